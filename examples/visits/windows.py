"""The tutorial on fault tolerance as a job: visits in 45 seconds, a row after every four."""

import headgate as hg
from pyspark.sql import functions as F

VISIT = "visit_id BIGINT, event_id STRING, page STRING, event_time TIMESTAMP"


@hg.job("visit_windows", checkpoints=hg.Checkpoints(every="5 seconds", retain=10))
def visit_windows(job: hg.Job) -> None:
    servers = job.param("servers", "localhost:9094")
    visits = job.source(
        "visits", hg.KafkaSource(servers, "generated_visits", schema=VISIT),
        event_time=hg.event_time("event_time"))     # they come in order

    counts = visits.key_by("visit_id").window(
        "visits_45s", hg.tumbling("45 seconds"),
        F.count("*").alias("visits"),
        early=hg.after_count(4))                    # and one row more when the window closes

    counts.sink("visit_windows", hg.KafkaSink(
        servers, "visit_windows", key="visit_id", delivery="at_least_once"))
