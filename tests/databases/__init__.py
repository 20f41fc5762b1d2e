"""Changes of databases: envelopes, and a real PostgreSQL that is followed by them."""
