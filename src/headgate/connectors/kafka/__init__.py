"""Kafka: source, sink, client and names."""
