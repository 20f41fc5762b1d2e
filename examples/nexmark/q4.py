"""Average price for a category: of the winning bids of its auctions.

The average must count each auction once, so it follows on the auction's last word: a session whose
gap is the longest auction ends when no bid for it can come any more.
"""

from dataclasses import dataclass

from nexmark import LONGEST_AUCTION, out
from pyspark.sql import Row
from pyspark.sql import functions as F
from winning import bids_in_time

import headgate as hg


@dataclass
class Category:
    """A category and its average so far."""

    category: int
    final: int


class Average(hg.Process):
    """A running average."""

    total = hg.value_state(int)
    count = hg.value_state(int)

    def on_final(self, auction: Row, ctx: hg.Context) -> hg.Out[Category]:
        """Add a price."""
        self.total.set((self.total.get() or 0) + auction.price)
        self.count.set((self.count.get() or 0) + 1)
        yield Category(auction.category, (self.total.get() or 0) // (self.count.get() or 1))


@hg.job("nexmark_q4")
def q4(job: hg.Job) -> None:
    """A join in time, the final price of each auction, a running average of these."""
    final = bids_in_time(job).key_by("id", "category").window(
        "final", hg.session(LONGEST_AUCTION), F.max("bid.price").alias("price")
    )  # fmt: skip
    average = job.process("average", Average(), final=final.key_by("category"))
    average.sink("out", out(job, key="category"))
