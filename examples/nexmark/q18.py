"""Find last bid: the last bid of each bidder for each auction.

Price and extra decide where times are equal.
"""

from nexmark import bids, out
from pyspark.sql import functions as F

import headgate as hg


@hg.job("nexmark_q18")
def q18(job: hg.Job) -> None:
    """The first of the rows of a key, the newest one first."""
    last = bids(job).key_by("bidder", "auction").top(
        "last", 1, by=[F.desc("dateTime"), F.desc("price"), "extra"]
    )  # fmt: skip
    last.sink("out", out(job, key="to_json(struct(bidder, auction, rank))"))
