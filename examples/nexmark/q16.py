"""Channel statistics: bids, bidders and auctions of each channel and day, by levels of price."""

from nexmark import bids, out
from pyspark.sql import functions as F
from ranks import by_rank

import headgate as hg


@hg.job("nexmark_q16")
def q16(job: hg.Job) -> None:
    """Distinct counts by key in windows of a day."""
    latest = F.expr("max(date_format(dateTime, 'HH:mm'))").alias("minute")
    days = bids(job).key_by("channel").window("days", hg.tumbling("1 day"), latest, *by_rank())
    named = days.with_columns(day="date_format(window_start, 'yyyy-MM-dd')")
    rows = named.drop("window_start", "window_end", "is_partial", "fired_by", "pane")
    rows.sink("out", out(job))
