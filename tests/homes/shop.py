"""The job of the contract: a lookup and one sink."""

from __future__ import annotations

import headgate as hg

ORDER, USER = "id BIGINT, user_id BIGINT", "id BIGINT, name STRING"


@hg.job("shop", checkpoints=hg.Checkpoints(every="1 second", retain=2))
def shop(job: hg.Job) -> None:
    """Orders with the name of their user."""
    orders = job.source("orders", hg.topic(job.param("orders"), schema=ORDER))
    users = job.table("users", hg.topic(job.param("users"), schema=USER), key="id")
    named = orders.lookup("users_lookup", users, on="user_id", take=["name"])
    named.sink("out", hg.topic(job.param("out")))
