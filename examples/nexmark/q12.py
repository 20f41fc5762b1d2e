"""Processing time windows: the bids of each bidder in 10 seconds of the clock."""

from nexmark import bids, out
from pyspark.sql import functions as F

import headgate as hg


@hg.job("nexmark_q12")
def q12(job: hg.Job) -> None:
    """Windows that end by the clock."""
    counts = bids(job).key_by("bidder").window(
        "counts", hg.tumbling("10 seconds", clock="processing"), F.count("*").alias("bid_count")
    )  # fmt: skip
    rows = counts.select(
        "bidder", "bid_count", "window_start AS starttime", "window_end AS endtime"
    )
    rows.sink("out", out(job))
