"""Bounded side input: each bid with a value from a table that does not change."""

from nexmark import bids, out, side_input

import headgate as hg


@hg.job("nexmark_q13")
def q13(job: hg.Job) -> None:
    """A lookup by an expression; bids without a value are dropped, as an inner join does."""
    found = bids(job).lookup(
        "values", side_input(job), on="auction % 10000", take=["value"], missing="drop"
    )
    found.select("auction", "bidder", "price", "dateTime", "value").sink("out", out(job))
