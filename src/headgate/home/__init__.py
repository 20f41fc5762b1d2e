"""The files of a home on any store: jobs, runs, records, requests, times. No Spark here."""
