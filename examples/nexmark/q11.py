"""User sessions: the bids of each session of a bidder; 10 seconds of silence end one."""

from nexmark import bids, out
from pyspark.sql import functions as F

import headgate as hg


@hg.job("nexmark_q11")
def q11(job: hg.Job) -> None:
    """Session windows."""
    sessions = bids(job).key_by("bidder").window(
        "sessions", hg.session("10 seconds"), F.count("*").alias("bid_count")
    )  # fmt: skip
    rows = sessions.select(
        "bidder", "bid_count", "window_start AS starttime", "window_end AS endtime"
    )
    rows.sink("out", out(job))
