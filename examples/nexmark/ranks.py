"""What q15 and q16 count: bids, bidders and auctions, all and by levels of price."""

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F

RANKS = {
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}


def bids_by_rank() -> Iterator[Column]:
    """COUNT(*), and COUNT(*) FILTER (WHERE ...) for each level of price."""
    yield F.count("*").alias("total_bids")
    for rank, level in RANKS.items():
        yield F.count_if(F.expr(level)).alias(f"{rank}_bids")


def distinct_by_rank(column: str) -> Iterator[Column]:
    """COUNT(DISTINCT column), and the same FILTER (WHERE ...) for each level of price."""
    yield F.count_distinct(F.col(column)).alias(f"total_{column}s")
    for rank, level in RANKS.items():
        found = F.when(F.expr(level), F.col(column))
        yield F.count_distinct(found).alias(f"{rank}_{column}s")


def by_rank() -> list[Column]:
    """All of q15 and q16."""
    return [*bids_by_rank(), *distinct_by_rank("bidder"), *distinct_by_rank("auction")]
