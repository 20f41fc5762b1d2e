"""A job with windows to be killed: counts with early and late rows, and sessions beside them."""

from __future__ import annotations

from pyspark.sql import functions as F

import headgate as hg

EVENT = "id BIGINT, user STRING, at BIGINT"


@hg.job(
    "visits",
    checkpoints=hg.Checkpoints(every="500 milliseconds"),
    restart=hg.fixed_delay(attempts=5, delay="1 second"),
)
def visits(job: hg.Job) -> None:
    # a batch is never more than a few chunks: rows that are hours late are late in every batch
    events = job.source(
        "events",
        hg.topic(job.param("events"), schema=EVENT, max_records="3000"),
        # more than the events' own: a batch may see one partition of a chunk before the other
        event_time=hg.event_time("timestamp_millis(at)", out_of_orderness="25 minutes"),
    )
    by_user = events.key_by("user")
    counts = by_user.window(
        "counts",
        hg.tumbling("5 minutes"),
        F.collect_set("id").alias("ids"),
        F.count("*").alias("n"),
        early=[hg.every("2 minutes"), hg.after_count(5)],
        allowed_lateness="2 minutes",
    )
    counts.sink("counts_out", hg.topic(job.param("counts_out")))
    counts.late.sink("counts_late", hg.topic(job.param("counts_late")))
    sessions = by_user.window(
        "sessions", hg.session("40 seconds"), F.collect_set("id").alias("ids")
    )
    sessions.sink("sessions_out", hg.topic(job.param("sessions_out")))
    sessions.late.sink("sessions_late", hg.topic(job.param("sessions_late")))
