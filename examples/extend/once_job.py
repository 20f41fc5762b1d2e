"""A job with a kind of step and a sink of one's own: each event once, into a table of SQLite."""

from __future__ import annotations

from datetime import timedelta

import headgate as hg
from examples.extend.dedupe import Dedupe
from examples.extend.sqlite_sink import SqliteSink


@hg.job("once", checkpoints=hg.Checkpoints(every="200 ms"))
def once(job: hg.Job) -> None:
    """Events of a topic, each id once, into the table `events` of a database."""
    topic = hg.topic(job.param("events"), schema="id STRING, value BIGINT", max_records="200")
    events = job.source("events", topic)
    first = events.key_by("id").step("once", Dedupe(timedelta(hours=1)))
    first.sink("table", SqliteSink(job.param("database"), "events"))
    first.side("duplicates").sink("again", hg.topic(job.param("again")))
