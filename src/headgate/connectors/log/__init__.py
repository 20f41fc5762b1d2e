"""The embedded topic log: source, sink and the files that they share."""
