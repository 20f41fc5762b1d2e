"""Which run a start continues: new, resumed, forked, or refused with a reason."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import ExitCode, RefusedError
from headgate.runtime.resume import Chosen, Start, choose_parallelism, choose_run
from headgate.snapshots.home import Home, JobHome, RunHome


@dataclass(frozen=True)
class FakeGraph:
    """A graph of sources and lookups."""

    sources: tuple[str, ...] = ("orders", "users")
    stateful: dict[str, str] = field(default_factory=lambda: {"users_lookup": "id BIGINT"})
    addresses: dict[str, str] = field(default_factory=dict)
    more: str = ""

    def to_json(self) -> dict[str, Any]:
        sources = [
            {"id": name, "kind": "source", "stateful": False, "state_schema": "",
             "detail": {"address": self.addresses.get(name, f"log:{name}")}}
            for name in self.sources
        ]  # fmt: skip
        lookups = [
            {"id": name, "kind": "lookup", "stateful": True, "state_schema": schema, "detail": {}}
            for name, schema in self.stateful.items()
        ]
        return {"version": 1, "sources": list(self.sources), "steps": sources + lookups}

    def fingerprint(self) -> str:
        return json.dumps([self.to_json(), self.more])


@pytest.fixture
def job(tmp_path: Path) -> JobHome:
    return Home(tmp_path).job("store")


def choose(
    job: JobHome, graph: FakeGraph, *, fresh: bool = False, out: tuple[str, ...] = (), **more: Any
) -> Chosen:
    start = Start(graph, 2, {}, {}, {})
    return choose_run(job, start, fresh=fresh, batch_is_out=lambda run, batch: out, **more)


def spark(run: RunHome, *, committed: int, planned: int) -> None:
    files = run.files
    files.write_text(f"{run.spark_path}/metadata", '{"id":"1"}')
    for batch in range(planned + 1):
        lines = ["v1", "{}", '{"0":1}', '{"0":2}']
        files.write_text(f"{run.spark_path}/offsets/{batch}", "\n".join(lines))
    for batch in range(committed + 1):
        files.write_text(f"{run.spark_path}/commits/{batch}", "v2\n{}")
        text = json.dumps({"batch": batch, "counters": {"orders": {"records_out": 4}}})
        files.write_text(f"{run.path}/journal/{batch:010d}.json", text)


def test_the_first_start_makes_a_run_from_nothing(job: JobHome) -> None:
    chosen = choose(job, FakeGraph())
    assert (chosen.run.id, chosen.how) == ("r1", "new")
    current = job.current()
    assert current is not None
    assert current.id == "r1"
    assert current.read().parallelism == 2


def test_the_same_graph_resumes_with_its_pending_batch(job: JobHome) -> None:
    spark(choose(job, FakeGraph()).run, committed=3, planned=4)
    chosen = choose(job, FakeGraph(), out=("enriched",))
    assert (chosen.run.id, chosen.how) == ("r1", "resumed")
    assert chosen.text == "run r1 resumes after ck:3, first batch 4 again"


def test_a_changed_graph_is_a_new_run_from_the_latest_checkpoint(job: JobHome) -> None:
    spark(choose(job, FakeGraph()).run, committed=3, planned=4)
    chosen = choose(job, FakeGraph(sources=("users", "orders")))
    assert (chosen.run.id, chosen.how) == ("r2", "forked")
    assert chosen.text == "the graph has changed: run r2 continues from ck:3 of run r1"
    text = chosen.run.files.read_text(f"{chosen.run.spark_path}/offsets/3")
    assert text is not None
    assert text.split("\n")[2:] == ['{"0":2}', '{"0":1}']
    record = chosen.run.latest_checkpoint()
    assert record is not None
    assert (record.id, record.type) == (3, "forked")
    assert record.totals == {"orders": {"records_out": 16}}, "counts of a killed driver go along"


def test_a_changed_graph_without_a_checkpoint_starts_from_nothing(job: JobHome) -> None:
    spark(choose(job, FakeGraph()).run, committed=-1, planned=0)
    chosen = choose(job, FakeGraph(more="x"))
    assert chosen.run.id == "r2"
    assert chosen.run.read().parent is None
    assert not chosen.run.files.exists(chosen.run.spark_path)


def test_a_changed_graph_is_refused_while_a_batch_is_partly_out(job: JobHome) -> None:
    spark(choose(job, FakeGraph()).run, committed=3, planned=4)
    with pytest.raises(RefusedError) as refused:
        choose(job, FakeGraph(more="x"), out=("enriched",))
    assert refused.value.exit_code == ExitCode.REFUSED
    assert "batch 4 of run r1 is out (enriched) but not committed" in str(refused.value)
    assert "start the old version once" in str(refused.value)
    assert len(job.runs()) == 1
    chosen = choose(job, FakeGraph(more="x"), out=("enriched",), allow_duplicates=True)
    assert chosen.run.id == "r2"


def test_fresh_leaves_the_old_run_alone(job: JobHome) -> None:
    spark(choose(job, FakeGraph()).run, committed=3, planned=4)
    chosen = choose(job, FakeGraph(), fresh=True)
    assert (chosen.run.id, chosen.how) == ("r2", "new")
    assert chosen.run.read().parent is None
    assert [run.id for run in job.runs()] == ["r1", "r2"]


@pytest.mark.parametrize(
    ("stateful", "said"),
    [
        ({}, "users_lookup gone"),
        ({"users_lookup": "id BIGINT", "items_lookup": ""}, "items_lookup new"),
        ({"users_lookup": "id STRING"}, "users_lookup with another state schema"),
    ],
)
def test_changed_state_is_refused_and_named(
    job: JobHome, stateful: dict[str, str], said: str
) -> None:
    choose(job, FakeGraph())
    with pytest.raises(RefusedError, match=f"job 'store' have changed: {said}.*--fresh"):
        choose(job, FakeGraph(stateful=stateful))


def test_a_source_that_moved_is_refused(job: JobHome) -> None:
    choose(job, FakeGraph())
    with pytest.raises(RefusedError, match=r"'orders' .* now reads log:new instead of log:orders"):
        choose(job, FakeGraph(addresses={"orders": "log:new"}))


def test_the_parallelism_of_a_run_is_fixed(job: JobHome) -> None:
    pick = lambda asked, fresh=False: choose_parallelism(  # noqa: E731
        job, asked, fresh=fresh, default=lambda: 8
    )
    assert pick(None) == 8
    assert pick(3) == 3
    choose(job, FakeGraph())
    assert pick(None) == 2
    assert pick(2) == 2
    assert pick(4, fresh=True) == 4
    with pytest.raises(RefusedError, match=r"in 2 partitions, not 4.*--fresh"):
        pick(4)
