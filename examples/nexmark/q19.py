"""Auction top 10: the ten highest bids of each auction, with their rank.

The SQL changes the ten whenever a higher bid comes. Here they come once, when an auction has had no
bid for an hour; one that gets bids after such a pause has ten more. Time, bidder and extra decide
where prices are equal.
"""

from nexmark import bids, out
from pyspark.sql import functions as F

import headgate as hg


@hg.job("nexmark_q19")
def q19(job: hg.Job) -> None:
    """The first ten of a sorted set."""
    order = F.struct(
        F.expr("-price AS down"), "dateTime", "bidder", "extra", F.struct("*").alias("bid")
    )
    best = bids(job).select("auction", order.alias("entry")).key_by("auction").window(
        "best", hg.session("1 hour"), F.slice(F.collect_set("entry"), 1, 10).alias("best")
    )  # fmt: skip
    ranked = best.select("posexplode(best) AS (place, best)")
    ranked.select("best.bid.*", "place + 1 AS rank_number").sink("out", out(job))
