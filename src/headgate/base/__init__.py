"""What every room may use: errors, durations, secrets, schemas. It imports no other room."""
