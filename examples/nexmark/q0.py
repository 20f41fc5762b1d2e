"""Pass through: every bid as it came."""

from nexmark import bids, out

import headgate as hg


@hg.job("nexmark_q0")
def q0(job: hg.Job) -> None:
    """SELECT auction, bidder, price, dateTime, extra FROM bid."""
    rows = bids(job).select("auction", "bidder", "price", "dateTime", "extra")
    rows.sink("out", out(job))
