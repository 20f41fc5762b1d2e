"""What q4, q6 and q9 share: each auction with the bids that came while it was open."""

from nexmark import LONGEST_AUCTION, auctions, bids

import headgate as hg


def bids_in_time(job: hg.Job) -> hg.Stream:
    """A join in time: no auction is open for longer than its bound, and `where` knows the rest.

    The SQL joins without a bound and keeps all bids for ever; here a row is forgotten when no match
    can come any more.
    """
    return auctions(job).key_by("id").join(
        "bids_in_time", bids(job).key_by("auction"),
        within=hg.between("0 seconds", LONGEST_AUCTION), into="bid",
        where="bid.dateTime <= expires",
    )  # fmt: skip
