"""Tables of databases, reached by JDBC: PostgreSQL, MySQL and MariaDB."""
