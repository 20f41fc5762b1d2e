"""Bidding statistics: bids, bidders and auctions of each day, by levels of price.

The SQL groups by day and updates a day's row for ever. A window of one day gives the row once, when
the day is over; `early=` would give updates before.
"""

from nexmark import bids, out
from ranks import by_rank

import headgate as hg


@hg.job("nexmark_q15")
def q15(job: hg.Job) -> None:
    """Distinct counts in windows of a day."""
    days = bids(job).key_by().window("days", hg.tumbling("1 day"), *by_rank())
    named = days.with_columns(day="date_format(window_start, 'yyyy-MM-dd')")
    rows = named.drop("window_start", "window_end", "is_partial", "fired_by", "pane")
    rows.sink("out", out(job))
