"""Find last bid: the last bid of each bidder for each auction.

A session of an hour without a bid ends, and its last bid goes to the topic by its key: the latest
record of a key is the row that the SQL has in the end. Price and extra decide where times are
equal.
"""

from nexmark import bids, out
from pyspark.sql import functions as F

import headgate as hg


@hg.job("nexmark_q18")
def q18(job: hg.Job) -> None:
    """The greatest row of a session, by key."""
    order = F.expr("struct(-unix_micros(dateTime), -price, extra)")
    every = bids(job).select("bidder", "auction", F.struct("*").alias("bid"), order.alias("order"))
    last = every.key_by("bidder", "auction").window(
        "last", hg.session("1 hour"), F.min_by("bid", "order").alias("bid")
    )
    last.select("bid.*").sink("out", out(job, key="concat(bidder, ':', auction)"))
