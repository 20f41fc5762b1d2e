"""Auction top 10: the ten highest bids of each auction, with their rank.

Time, bidder and extra decide where prices are equal.
"""

from nexmark import bids, out
from pyspark.sql import functions as F

import headgate as hg


@hg.job("nexmark_q19")
def q19(job: hg.Job) -> None:
    """The first ten of each auction's bids."""
    best = bids(job).key_by("auction").top(
        "best", 10, by=[F.desc("price"), "dateTime", "bidder", "extra"]
    )  # fmt: skip
    ranked = best.select("*", "rank AS rank_number")
    ranked.sink("out", out(job, key="to_json(struct(auction, rank))"))
