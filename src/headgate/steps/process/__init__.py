"""Process functions: a user's Python with state and timers for each key."""
