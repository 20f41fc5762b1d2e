"""Faults below and beside the process, against real jobs."""
