"""Monitor new users: people who signed up and opened an auction in the same 10 seconds."""

from nexmark import auctions, out, persons
from pyspark.sql import functions as F

import headgate as hg


@hg.job("nexmark_q8")
def q8(job: hg.Job) -> None:
    """A join in windows; the right side is one row a seller and window."""
    period = hg.tumbling("10 seconds")
    sellers = auctions(job).key_by("seller").window("sellers", period, F.count("*").alias("n"))
    new = persons(job).key_by("id").join("new", sellers.key_by("seller"), within=period)
    new.select("id", "name", "window_start AS starttime").sink("out", out(job))
