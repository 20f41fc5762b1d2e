"""Local item suggestion: who sells in Oregon, Idaho or California in category 10.

The SQL is a join without a bound in time. A person signs up once and does not change, so each
auction has one person to find, and a lookup gives the same rows. An auction waits if its person has
not come yet; SQL would let it wait for ever, here it is for a week.
"""

from nexmark import auctions, out, persons_table

import headgate as hg


@hg.job("nexmark_q3")
def q3(job: hg.Job) -> None:
    """A lookup whose rows wait for the table."""
    in_category = auctions(job).where("category = 10").select("id", "seller")
    sold = in_category.lookup(
        "sellers", persons_table(job), on="seller", take=["name", "city", "state"],
        missing=hg.Wait("7 days"),
    )  # fmt: skip
    local = sold.where("state IN ('OR', 'ID', 'CA')").select("name", "city", "state", "id")
    local.sink("out", out(job))
