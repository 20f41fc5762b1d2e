"""Average price for a category: of the winning bids of its auctions.

The average must count each auction once, so it follows on the auction's last word: a session whose
gap is the longest auction ends when no bid for it can come any more.
"""

from nexmark import LONGEST_AUCTION, out
from pyspark.sql import functions as F
from winning import bids_in_time

import headgate as hg


@hg.job("nexmark_q4")
def q4(job: hg.Job) -> None:
    """A join in time, the final price of each auction, a running average of these."""
    final = bids_in_time(job).key_by("id", "category").window(
        "final", hg.session(LONGEST_AUCTION), F.max("bid.price").alias("price")
    )  # fmt: skip
    average = F.expr("sum(price) DIV count(*)").alias("final")
    final.key_by("category").aggregate("average", average).sink("out", out(job, key="category"))
