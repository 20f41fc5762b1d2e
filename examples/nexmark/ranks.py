"""What q15 and q16 count: bids, bidders and auctions, all and by levels of price."""

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F

RANKS = {
    "total": "true",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}


def by_rank() -> Iterator[Column]:
    """COUNT(*), COUNT(DISTINCT bidder) and COUNT(DISTINCT auction), each FILTER (WHERE rank)."""
    for rank, level in RANKS.items():
        yield F.count(F.when(F.expr(level), F.col("price"))).alias(f"{rank}_bids")
    for column in ("bidder", "auction"):
        for rank, level in RANKS.items():
            found = F.when(F.expr(level), F.col(column))
            yield F.size(F.collect_set(found)).alias(f"{rank}_{column}s")
