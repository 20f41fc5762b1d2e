"""Auction statistics: bids and prices of each auction and day.

The SQL updates a row for ever; a window of one day gives it once, when the day is over.
"""

from nexmark import bids, out
from pyspark.sql import functions as F
from ranks import bids_by_rank

import headgate as hg


@hg.job("nexmark_q17")
def q17(job: hg.Job) -> None:
    """Windows of a day by auction."""
    days = bids(job).key_by("auction").window(
        "days", hg.tumbling("1 day"), *bids_by_rank(),
        F.min("price").alias("min_price"), F.max("price").alias("max_price"),
        F.expr("sum(price) DIV count(*)").alias("avg_price"), F.sum("price").alias("sum_price"),
    )  # fmt: skip
    named = days.with_columns(day="date_format(window_start, 'yyyy-MM-dd')")
    named.drop("window_start", "window_end", "is_partial", "fired_by", "pane").sink("out", out(job))
