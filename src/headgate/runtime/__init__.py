"""Starting, supervising and stopping a job's query; its lease and its records."""
