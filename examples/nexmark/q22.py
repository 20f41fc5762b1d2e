"""URL directories: the first three folders of a bid's URL."""

from nexmark import bids, out

import headgate as hg


@hg.job("nexmark_q22")
def q22(job: hg.Job) -> None:
    """Parts of a text; get() gives NULL where there is no such part."""
    folders = [f"get(split(url, '/'), {3 + n}) AS dir{1 + n}" for n in range(3)]
    bids(job).select("auction", "bidder", "price", "channel", *folders).sink("out", out(job))
