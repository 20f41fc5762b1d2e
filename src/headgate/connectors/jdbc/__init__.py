"""Tables of databases, reached by JDBC: PostgreSQL."""
