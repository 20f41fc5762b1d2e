"""Highest bid: the bids with the highest price of each 10 seconds.

As in the SQL a bid at the very end of a window belongs to the next one and may still match.
"""

from nexmark import bids, out
from pyspark.sql import functions as F

import headgate as hg


@hg.job("nexmark_q7")
def q7(job: hg.Job) -> None:
    """A stream joined with its own windows."""
    every = bids(job)
    highest = every.key_by().window(
        "highest", hg.tumbling("10 seconds"), F.max("price").alias("maxprice")
    )
    found = every.key_by("price").join(
        "found", highest.key_by("maxprice"), within=hg.between("-1 second", "10 seconds"),
        into="top", where="dateTime BETWEEN top.window_start AND top.window_end",
    )  # fmt: skip
    found.select("auction", "price", "bidder", "dateTime", "extra").sink("out", out(job))
