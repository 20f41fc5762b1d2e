"""Deduplication: the first row of each key."""

from headgate.steps.dedupe.step import DedupeStep, add_dedupe

__all__ = ["DedupeStep", "add_dedupe"]
