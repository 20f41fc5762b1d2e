"""Pulsar: source, sink, client, admin and names."""
