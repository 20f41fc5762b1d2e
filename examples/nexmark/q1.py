"""Currency conversion: the price of each bid in euros."""

from nexmark import bids, out

import headgate as hg


@hg.job("nexmark_q1")
def q1(job: hg.Job) -> None:
    """An expression on each row."""
    rows = bids(job).select("auction", "bidder", "0.908 * price AS price", "dateTime", "extra")
    rows.sink("out", out(job))
