"""Totals of users, while they are neither low nor high, into three kinds of tables at once."""

from pyspark.sql import functions as F

import headgate as hg


@hg.job(
    "changes",
    checkpoints=hg.Checkpoints(every="300 milliseconds"),
    restart=hg.fixed_delay(attempts=100, delay="300 milliseconds"),
)
def changes(job: hg.Job) -> None:
    login = {"user": job.param("user"), "password": job.secret("password")}
    schema = "user STRING, price BIGINT"
    orders = job.source("orders", hg.topic(job.param("orders"), schema=schema, max_records="300"))
    totals = orders.key_by("user").aggregate(
        "totals",
        F.sum("price").alias("total"),
        F.count("*").alias("orders"),
        having="total BETWEEN 5 AND 40",
    )
    table = hg.JdbcSink(
        job.param("url"), "totals", mode="upsert", key=["user"], create=True, options=login
    )
    totals.sink("postgres", table)
    totals.sink("delta", hg.DeltaSink(job.param("lake"), mode="merge", key=["user"]))
    totals.sink("kafka", hg.topic(job.param("totals"), key="user"))
