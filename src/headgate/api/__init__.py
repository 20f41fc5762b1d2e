"""What a user writes: jobs and streams. `import headgate as hg` shows it."""
