"""Log to the file system: every bid as CSV, with its day and minute.

Files are written exactly once, in a folder a batch. The SQL asks for a folder a minute: here day
and minute are columns.
"""

from nexmark import bids

import headgate as hg


@hg.job("nexmark_q10")
def q10(job: hg.Job) -> None:
    """A sink of files."""
    rows = bids(job).select(
        "auction", "bidder", "price", "dateTime", "extra",
        "date_format(dateTime, 'yyyy-MM-dd') AS dt", "date_format(dateTime, 'HH:mm') AS hm",
    )  # fmt: skip
    rows.sink("out", hg.FilesSink(job.param("out", "data/nexmark/q10"), format="csv"))
