"""What q15 and q16 count: bids, bidders and auctions, all and by levels of price."""

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F

COUNTED = {"bids": "*", "bidders": "DISTINCT bidder", "auctions": "DISTINCT auction"}
RANKS = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")


def by_rank() -> Iterator[Column]:
    """Of each, COUNT(...), and COUNT(...) FILTER (WHERE ...) for each level of price."""
    for name, what in COUNTED.items():
        yield F.expr(f"count({what})").alias(f"total_{name}")
        for rank, level in enumerate(RANKS, start=1):
            yield F.expr(f"count({what}) FILTER (WHERE {level})").alias(f"rank{rank}_{name}")
