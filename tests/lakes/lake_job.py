"""The job that is killed: orders appended, by day, and what users have paid, in both formats."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

import headgate as hg

ORDER = "user STRING, price BIGINT, day DATE"


@hg.job("tables", checkpoints=hg.Checkpoints(every="200 ms"))
def tables(job: hg.Job) -> None:
    """Five tables in the folder `lake`; of users those who have paid neither little nor much."""
    lake, limit = job.param("lake"), job.param("limit", "")
    options = {"max_records": limit} if limit else {}
    orders = job.source("orders", hg.topic(job.param("orders"), schema=ORDER, **options))
    orders.sink("all", hg.DeltaSink(f"{lake}/all"))
    orders.sink("days", hg.DeltaSink(f"{lake}/days", partition_by=["day"]))
    orders.sink("ice_all", iceberg(lake, "all"))
    totals = orders.key_by("user").aggregate(
        "totals",
        F.sum("price").alias("total"),
        F.count("*").alias("n"),
        having="total BETWEEN 50 AND 300",
    )
    totals.sink("paid", hg.DeltaSink(f"{lake}/paid", mode="merge", key=["user"]))
    totals.sink("ice_paid", iceberg(lake, "paid", mode="merge", key=["user"]))


def iceberg(lake: str, name: str, **options: Any) -> hg.Sink:
    """A table of a catalog that lies in the lake's folder, as the table's files do."""
    catalog = {"type": "sql", "uri": f"sqlite:///{lake}/catalog.db", "warehouse": f"file://{lake}"}
    return hg.IcebergSink(f"ice.{name}", options=catalog, **options)
