"""Hot items: the auctions with the most bids in the last 10 seconds, every 2 seconds.

The SQL counts twice and joins the counts with their greatest. Here the counts of a window, whose
rows carry its end as their time, are collected in a second window; all auctions that share the
first place stay.
"""

from nexmark import bids, out
from pyspark.sql import functions as F

import headgate as hg


@hg.job("nexmark_q5")
def q5(job: hg.Job) -> None:
    """A window on the rows of a window."""
    counts = bids(job).key_by("auction").window(
        "counts", hg.sliding("10 seconds", every="2 seconds"), F.count("*").alias("num")
    )  # fmt: skip
    hot = counts.key_by("window_end AS until").window(
        "hot", hg.tumbling("2 seconds"),
        F.collect_set(F.struct("auction", "num")).alias("items"), F.max("num").alias("most"),
    )  # fmt: skip
    hot.select("inline(filter(items, item -> item.num = most))").sink("out", out(job))
