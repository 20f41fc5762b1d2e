"""Steps and sinks of one's own."""
