"""The home on disk: jobs, runs, checkpoints and events; forks of a run. Starts no query."""
