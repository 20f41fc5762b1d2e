"""Winning bids: each auction with its highest bid while it was open, the first of equal ones.

As in SQL an auction's row changes whenever a higher bid comes. Which of equal bids at the same time
wins the SQL leaves open; bidder and extra decide here, and in the truth.
"""

from nexmark import out
from pyspark.sql import functions as F
from winning import bids_in_time

import headgate as hg


@hg.job("nexmark_q9")
def q9(job: hg.Job) -> None:
    """A join in time, then the best of the pairs of each auction."""
    won = bids_in_time(job).key_by("id").top(
        "won", 1, by=[F.desc("bid.price"), "bid.dateTime", "bid.bidder", "bid.extra"]
    )  # fmt: skip
    bid = ["bid.auction", "bid.bidder", "bid.price"]
    rows = won.select("*", *bid, "bid.dateTime AS bid_dateTime", "bid.extra AS bid_extra")
    rows.sink("out", out(job, key="to_json(struct(id, rank))"))
