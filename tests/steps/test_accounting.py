"""`show --steps` accounts for every record of a job with each kind of step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

import headgate as hg
from headgate.cli.main import invoke
from headgate.testing import Deleted, JobDriver

Make = Callable[..., JobDriver]
USER = "id BIGINT, name STRING"
ORDER = "id BIGINT, user_id BIGINT, at TIMESTAMP"
ORDERS, KNOWN = 40, 10


@dataclass
class Seen:
    user_id: int
    n: int


class Count(hg.Process):
    """Tells every third row of a user."""

    n = hg.value_state(int)

    def on_clean(self, order: Row, ctx: hg.Context) -> hg.Out[Seen]:
        n = (self.n.get() or 0) + 1
        self.n.set(n)
        if n % 3 == 0:
            yield Seen(order.user_id, n)


@hg.job("every_kind")
def every_kind(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema=USER), key="id")
    orders = job.source(
        "orders",
        hg.topic("log:orders", schema=ORDER),
        malformed="side",
        event_time=hg.event_time("at", out_of_orderness="1 second"),
    )
    orders.malformed.sink("malformed", hg.topic("log:malformed"))
    clean = orders.transform("clean", lambda df: df.where("id >= 0"))

    def looked_up(name: str, missing: Any) -> None:
        found = clean.lookup(name, users, on="user_id", missing=missing)
        found.select("id").sink(f"{name}_out", hg.topic(f"log:{name}"))

    looked_up("nulls", "null")
    looked_up("drops", "drop")
    looked_up("asides", "side")
    looked_up("waits", hg.Wait("1 hour", hold_watermark=False))
    minutes = clean.key_by("user_id").window(
        "minutes", hg.tumbling("1 minute"), F.count("*").alias("n")
    )
    minutes.sink("minutes_out", hg.topic("log:minutes"))
    seen = job.process("seen", Count(), clean=clean.key_by("user_id"))
    seen.sink("seen_out", hg.topic("log:seen"))


def order(id: int, minute: int = 0) -> dict[str, Any]:
    return {"id": id, "user_id": id % 20, "at": f"2026-01-01T12:{minute:02d}:00Z"}


def steps(t: JobDriver, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    assert invoke(["show", "every_kind", "--steps", "--json", "--home", t.home]) == 0
    return {step["step"]: step for step in json.loads(capsys.readouterr().out)["steps"]}


def accounted(step: dict[str, Any]) -> int:
    """All places where a row that came in can be."""
    own = ("missing", "late", "dropped", "waiting")
    beside = [n for name, n in step["side"].items() if name not in own]
    went = step["taken"] if step["taken"] is not None else step["records_out"] + sum(beside)
    return int(went) + sum(step[name] or 0 for name in own)


def test_every_record_of_every_kind_of_step_is_accounted_for(
    job_driver: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    t = job_driver(every_kind)
    t.send("users", *({"id": id, "name": f"user {id}"} for id in range(KNOWN)))
    t.send("users", {"id": 99, "name": "gone"}, Deleted(99))
    t.send("orders", *(order(id) for id in range(ORDERS)), order(-1), "not json").run()
    t.send("orders", order(100, minute=5)).run()
    t.send("orders", *(order(id) for id in (101, 102, 103))).run()  # their window has closed
    found = steps(t, capsys)

    sent, came, known = ORDERS + 5, ORDERS + 4, ORDERS // 2 + 4
    assert found["orders"]["records_in"] is None and found["orders"]["records_out"] == sent
    assert found["orders"]["side"] == {"malformed": 1}
    clean = found["clean"]
    assert (clean["records_in"], clean["records_out"]) == (sent, came)
    assert found["users"]["records_out"] == KNOWN + 2
    for name in ("nulls", "drops", "asides", "waits"):
        assert (found[name]["records_in"], found[name]["table_in"]) == (came, KNOWN + 2), name
    nulls, drops, asides, waits = (found[n] for n in ("nulls", "drops", "asides", "waits"))
    assert (nulls["records_out"], nulls["unmatched"]) == (came, came - known)
    assert (drops["records_out"], drops["dropped"]) == (known, came - known)
    assert (asides["records_out"], asides["missing"]) == (known, came - known)
    assert (waits["records_out"], waits["waiting"]) == (known, came - known)
    assert found["minutes"]["records_in"] == came and found["minutes"]["late"] == 3
    assert (found["seen"]["records_in"], found["seen"]["taken"]) == (came, came)
    for step in found.values():
        if step["records_in"] is not None:
            assert step["records_in"] == accounted(step), step

    t.send("users", {"id": 15, "name": "late"}).run()  # for two orders that wait
    t.advance_processing_time("2 hours").run()
    waits = steps(t, capsys)["waits"]
    assert (waits["records_in"], waits["table_in"]) == (came, KNOWN + 3)
    assert (waits["records_out"], waits["missing"]) == (known + 2, came - known - 2)
    assert waits["waiting"] == 0 and waits["records_in"] == accounted(waits)

    t.run(drain=True)
    assert sum(row["n"] for row in t.rows("minutes_out")) == found["minutes"]["taken"]
    assert invoke(["show", "every_kind", "--steps", "--home", t.home]) == 0
    head = capsys.readouterr().out.splitlines()[1].split()
    assert head[2:11] == [
        "IN", "TABLE", "OUT", "UNMATCHED", "MISSING", "LATE", "DROPPED", "TAKEN", "SIDE",
    ]  # fmt: skip
