"""Add channel id: by the channel's name, or from the URL; bids without one are left out."""

from nexmark import bids, out

import headgate as hg


@hg.job("nexmark_q21")
def q21(job: hg.Job) -> None:
    """CASE and a regular expression; Spark gives '' where the SQL gives NULL."""
    found = bids(job).select(
        "auction", "bidder", "price", "channel",
        """CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1'
                               WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
           ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') END AS channel_id""",
    )  # fmt: skip
    found.where("channel_id IS NOT NULL").sink("out", out(job))
