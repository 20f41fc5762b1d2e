"""Process functions: what users write, and what runs their handlers in a worker or in a test."""
