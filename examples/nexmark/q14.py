"""Calculation: bids of some price, with the time of day and a count of letters."""

from nexmark import bids, out

import headgate as hg


@hg.job("nexmark_q14")
def q14(job: hg.Job) -> None:
    """Expressions; a function that Spark has stands for the SQL's own function."""
    priced = bids(job).with_columns(price="0.908 * price", hour="hour(dateTime)")
    rows = priced.where("price > 1000000 AND price < 50000000").select(
        "auction", "bidder", "price",
        """CASE WHEN hour BETWEEN 8 AND 18 THEN 'dayTime'
                WHEN hour <= 6 OR hour >= 20 THEN 'nightTime'
                ELSE 'otherTime' END AS bidTimeType""",
        "dateTime", "extra", "regexp_count(extra, 'c') AS c_counts",
    )  # fmt: skip
    rows.sink("out", out(job))
