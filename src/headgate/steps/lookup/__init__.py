"""Tables and lookups."""
