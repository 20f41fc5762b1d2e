"""Selection: the bids for every 123rd auction."""

from nexmark import bids, out

import headgate as hg


@hg.job("nexmark_q2")
def q2(job: hg.Job) -> None:
    """WHERE."""
    bids(job).where("auction % 123 = 0").select("auction", "price").sink("out", out(job))
