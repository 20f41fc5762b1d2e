"""Expand bid with auction: bids with their auction, of category 10.

The SQL is a join without a bound in time. An auction comes once, so each bid has one to find, and a
lookup gives the same rows; bids wait for auctions that have not come yet. SQL would keep every bid
for ever, a lookup keeps only those that wait, for a week at most.
"""

from nexmark import auctions_table, bids, out

import headgate as hg


@hg.job("nexmark_q20")
def q20(job: hg.Job) -> None:
    """A lookup whose rows wait for the table."""
    found = bids(job).lookup(
        "auction_of", auctions_table(job), on="auction", into="a", missing=hg.Wait("7 days")
    )
    rows = found.where("a.category = 10").select(
        "auction", "bidder", "price", "channel", "url", "dateTime AS bid_dateTime",
        "extra AS bid_extra", "a.itemName", "a.description", "a.initialBid", "a.reserve",
        "a.dateTime AS auction_dateTime", "a.expires", "a.seller", "a.category",
        "a.extra AS auction_extra",
    )  # fmt: skip
    rows.sink("out", out(job))
