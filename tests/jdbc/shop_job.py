"""Orders into a database: each as it is, and totals of users while they are not too high."""

from pyspark.sql import functions as F

import headgate as hg


@hg.job(
    "shop",
    checkpoints=hg.Checkpoints(every="200 milliseconds"),
    restart=hg.fixed_delay(attempts=100, delay="300 milliseconds"),
)
def shop(job: hg.Job) -> None:
    login = {"user": job.param("user"), "password": job.secret("password")}
    topic = hg.topic(
        job.param("orders"), schema="id BIGINT, user STRING, price BIGINT", max_records="400"
    )
    orders = job.source("orders", topic)
    orders.sink("every", hg.JdbcSink(job.param("url"), "every_order", create=True, options=login))
    totals = orders.key_by("user").aggregate(
        "totals",
        F.sum("price").alias("total"),
        F.count("*").alias("orders"),
        having="total BETWEEN 5 AND 40",
    )
    totals.sink(
        "totals_table",
        hg.JdbcSink(
            job.param("url"), "totals", mode="upsert", key=["user"], create=True, options=login
        ),
    )
