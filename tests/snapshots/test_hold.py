"""A checkpoint that is read stays readable, whatever retention does meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import headgate as hg
from headgate.base.errors import NotFoundError
from headgate.home.layout import Home
from headgate.snapshots.hold import held
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from headgate.testing import JobDriver


@hg.job("held")
def job(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    orders = job.source("orders", hg.topic("log:orders", schema="id BIGINT"))
    orders.lookup("users_lookup", users, on="id").sink("out", hg.topic("log:out"))


def test_what_is_held_outlives_retention(job_driver: Callable[..., JobDriver]) -> None:
    t = job_driver(job)
    t.send("users", *({"id": k, "name": f"n{k}"} for k in range(0, 90, 9))).run()
    snapshot = find_snapshot(Home(t.home), "latest", "held")
    run = Path(t.home) / "jobs" / "held" / "runs" / "r1"
    with held(snapshot) as kept:
        shutil.rmtree(run / "spark")
        rows = StateReader(t.spark, kept).view("users_lookup").all()
        assert sorted(row["key"]["id"] for row in rows) == list(range(0, 90, 9))
    assert list((run / "reading").iterdir()) == []
    with pytest.raises(NotFoundError, match="was deleted by retention just now"), held(snapshot):
        pass
