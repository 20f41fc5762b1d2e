"""The command line: verbs and tables. Knows no Spark."""
