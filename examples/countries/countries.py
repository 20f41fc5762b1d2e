import headgate as hg
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

EVENT = "user_id STRING, country STRING, page STRING, event_time TIMESTAMP"


def clean(df: DataFrame) -> DataFrame:
    return df.where("country IS NOT NULL").withColumn("country", F.upper("country"))


@hg.job("country_activity")
def country_activity(job: hg.Job) -> None:
    servers = job.param("servers")
    events = job.source(
        "events", hg.KafkaSource(servers, "events", schema=EVENT),
        event_time=hg.event_time("event_time", out_of_orderness="1 minute")
    ).transform("clean", clean)

    hourly = events.key_by("country").window(
        "country_hourly", hg.tumbling("1 hour"),
        F.count("*").alias("events"), F.approx_count_distinct("user_id").alias("users"),
        early=hg.when(F.col("events") >= 10),        # once per country and hour, at once
        allowed_lateness="5 minutes")
    hourly.where(~F.col("is_partial")).sink("hourly", hg.KafkaSink(servers, "country-hourly"))
    hourly.where("fired_by = 'early'").sink("alerts", hg.KafkaSink(
        servers, "alerts", key="country", delivery="exactly_once"))

    sessions = events.key_by("user_id").window(
        "user_sessions", hg.session(job.param("session_gap", "5 minutes")),
        F.count("*").alias("events"), F.collect_set("page").alias("pages"))
    sessions.sink("sessions", hg.KafkaSink(servers, "sessions", key="user_id"))
