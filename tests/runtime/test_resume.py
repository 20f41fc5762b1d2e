"""Which run a start continues: new, resumed, forked, or refused with a reason."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import headgate.steps.known  # noqa: F401 - kinds are asked by their names
from headgate.base.errors import ExitCode, HeadgateError, RefusedError
from headgate.home.layout import Home, JobHome, RunHome
from headgate.runtime.resume import (
    Chosen,
    RestoreServices,
    Start,
    StartRequest,
    choose_parallelism,
    choose_run,
)
from headgate.runtime.sink_position import Marker
from headgate.snapshots.spark_log import planned_batches


@dataclass(frozen=True)
class FakeGraph:
    """A graph of sources and lookups."""

    sources: tuple[str, ...] = ("orders", "users")
    stateful: dict[str, str] = field(default_factory=lambda: {"users_lookup": "id BIGINT"})
    addresses: dict[str, str] = field(default_factory=dict)
    more: str = ""

    def to_json(self) -> dict[str, Any]:
        sources = [
            {"id": name, "kind": "source", "role": "source", "stateful": False, "inputs": [],
             "state_schema": "", "address": self.addresses.get(name, f"log:{name}"), "config": {}}
            for name in self.sources
        ]  # fmt: skip
        lookups = [
            {"id": name, "kind": "lookup", "role": "step", "stateful": True, "inputs": [],
             "state_schema": schema, "address": "", "operator_id": number,
             "config": {"table": "", "table_key": ["id"]}}
            for number, (name, schema) in enumerate(self.stateful.items())
        ]  # fmt: skip
        return {"version": 2, "sources": list(self.sources), "steps": sources + lookups}

    def fingerprint(self) -> str:
        return json.dumps([self.to_json(), self.more])


@pytest.fixture
def job(tmp_path: Path) -> JobHome:
    return Home(tmp_path).job("store")


def choose(
    job: JobHome,
    graph: FakeGraph,
    *,
    out: tuple[str, ...] = (),
    parallelism: int = 2,
    **request: Any,
) -> Chosen:
    def rewrite(*, partitions: int, **_: Any) -> list[list[str]]:
        return [["empty"]] * partitions

    def markers(run: RunHome) -> dict[str, list[Marker]]:
        return {sink: [Marker(max(planned_batches(run)))] for sink in out}

    services = RestoreServices(markers=markers, rewrite=rewrite)
    return choose_run(job, Start(graph, parallelism, {}, {}, {}), StartRequest(**request), services)


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
    assert chosen.text == "the graph has changed: run r2 goes on from r1/ck:3"
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


def test_state_that_would_be_lost_is_refused_with_the_plan(job: JobHome) -> None:
    spark(choose(job, FakeGraph()).run, committed=3, planned=3)
    renamed = FakeGraph(stateful={"people_lookup": "id BIGINT"})
    with pytest.raises(RefusedError) as refused:
        choose(job, renamed)
    assert refused.value.exit_code == ExitCode.REFUSED
    assert "state would be lost: users_lookup" in str(refused.value)
    assert "+ people_lookup  new state, starts empty" in str(refused.value)
    assert "--allow-dropped-state" in str(refused.value)
    assert len(job.runs()) == 1
    assert choose(job, renamed, allow_dropped_state=True).run.id == "r2"


def test_state_of_other_types_is_refused_whatever_is_allowed(job: JobHome) -> None:
    spark(choose(job, FakeGraph()).run, committed=3, planned=3)
    with pytest.raises(RefusedError, match="users_lookup: its state has other columns or types"):
        choose(job, FakeGraph(stateful={"users_lookup": "id STRING"}), allow_dropped_state=True)


def test_a_source_that_moved_is_refused(job: JobHome) -> None:
    spark(choose(job, FakeGraph()).run, committed=3, planned=3)
    with pytest.raises(RefusedError, match=r"orders: now reads log:new instead of log:orders"):
        choose(job, FakeGraph(addresses={"orders": "log:new"}))


def test_a_chosen_checkpoint_is_a_new_run_with_its_parent(job: JobHome) -> None:
    spark(choose(job, FakeGraph()).run, committed=3, planned=4)
    chosen = choose(job, FakeGraph(), restore="ck:1", out=("enriched",))
    assert (chosen.run.id, chosen.how) == ("r2", "restored")
    parent = chosen.run.read().parent
    assert parent is not None
    assert (parent.run, parent.checkpoint) == ("r1", 1)
    assert chosen.run.files.list(f"{chosen.run.spark_path}/commits") == ["1"]
    assert chosen.run.files.list(f"{chosen.run.spark_path}/offsets") == ["0", "1"]


def test_an_ancestors_checkpoint_is_found_by_its_number(job: JobHome) -> None:
    spark(choose(job, FakeGraph()).run, committed=3, planned=3)
    choose(job, FakeGraph(), restore="latest")
    assert choose(job, FakeGraph(), restore="ck:1").run.read().parent.run == "r1"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ck:9", "ck:9 of run r1 of job 'store' is not retained.*ck:0 to ck:3"),
        ("sp:none", "job 'store' has no savepoint 'none'"),
        ("r7/ck:1", "no run r7"),
        ("ck:x", "a snapshot must be latest.* got 'ck:x'"),
        ("yesterday", "a snapshot must be latest.* got 'yesterday'"),
        ("/no/such/folder", "is not a savepoint: it has no manifest.json"),
    ],
)
def test_a_snapshot_that_is_not_there_is_named(job: JobHome, text: str, said: str) -> None:
    spark(choose(job, FakeGraph()).run, committed=3, planned=3)
    with pytest.raises(HeadgateError, match=said):
        choose(job, FakeGraph(), restore=text)


def test_the_parallelism_is_that_of_the_run_unless_another_is_asked_for(job: JobHome) -> None:
    def pick(asked: int | None, **request: Any) -> int:
        return choose_parallelism(job, asked, StartRequest(**request), default=lambda: 8)

    assert pick(None) == 8
    assert pick(3) == 3
    spark(choose(job, FakeGraph()).run, committed=1, planned=1)
    assert pick(None) == 2
    assert pick(None, restore="ck:1") == 2
    assert pick(4) == 4
    chosen = choose(job, FakeGraph(), parallelism=4)
    assert (chosen.run.id, chosen.how) == ("r2", "forked")
    text = chosen.run.files.read_text(f"{chosen.run.spark_path}/offsets/1")
    assert text is not None
    assert json.loads(text.split("\n")[1])["conf"]["spark.sql.shuffle.partitions"] == "4"
