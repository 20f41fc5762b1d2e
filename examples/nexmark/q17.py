"""Auction statistics: bids and prices of each auction and day."""

from nexmark import bids, out
from pyspark.sql import functions as F

import headgate as hg


@hg.job("nexmark_q17")
def q17(job: hg.Job) -> None:
    """A running aggregate by auction and day."""
    days = bids(job).key_by("auction", "date_format(dateTime, 'yyyy-MM-dd') AS day").aggregate(
        "days", F.count("*").alias("total_bids"),
        F.expr("count(*) FILTER (WHERE price < 10000)").alias("rank1_bids"),
        F.expr("count(*) FILTER (WHERE price >= 10000 AND price < 1000000)").alias("rank2_bids"),
        F.expr("count(*) FILTER (WHERE price >= 1000000)").alias("rank3_bids"),
        F.min("price").alias("min_price"), F.max("price").alias("max_price"),
        F.expr("sum(price) DIV count(*)").alias("avg_price"), F.sum("price").alias("sum_price"),
    )  # fmt: skip
    days.sink("out", out(job, key="to_json(struct(auction, day))"))
