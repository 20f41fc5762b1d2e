"""Winning bids: each auction with its highest bid while it was open, the first of equal ones.

The SQL changes an auction's row whenever a higher bid comes. Here it comes once: a session whose
gap is the longest auction ends when no bid for it can come any more. Which of equal bids at the
same time wins the SQL leaves open; bidder and extra decide here, and in the truth.
"""

from nexmark import LONGEST_AUCTION, out
from pyspark.sql import functions as F
from winning import bids_in_time

import headgate as hg


@hg.job("nexmark_q9")
def q9(job: hg.Job) -> None:
    """A join in time, then the best of the pairs of each auction."""
    pairs = bids_in_time(job).select("id", F.struct("*").alias("pair"))
    best = F.expr("struct(-pair.bid.price, pair.bid.dateTime, pair.bid.bidder, pair.bid.extra)")
    won = pairs.key_by("id").window(
        "won", hg.session(LONGEST_AUCTION), F.min_by("pair", best).alias("pair")
    )
    rows = won.select(
        "id", "pair.itemName", "pair.description", "pair.initialBid", "pair.reserve",
        "pair.dateTime", "pair.expires", "pair.seller", "pair.category", "pair.extra",
        "pair.bid.auction", "pair.bid.bidder", "pair.bid.price",
        "pair.bid.dateTime AS bid_dateTime", "pair.bid.extra AS bid_extra",
    )  # fmt: skip
    rows.sink("out", out(job))
