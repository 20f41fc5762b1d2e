"""Sinks in Python: PythonSink by task, ForeachBatchSink on the driver, tokens, crashes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import headgate as hg
from headgate.graph.plan import BuiltJob
from headgate.testing import JobDriver

SCHEMA = "id BIGINT, name STRING, at TIMESTAMP, tags ARRAY<STRING>, amount DECIMAL(10, 2)"
Make = Callable[..., JobDriver]


class FolderSink(hg.PythonSink):
    """A file a partition and call; the driver writes down which of them count."""

    def __init__(self, folder: str, fail: str = "") -> None:
        self.folder, self.fail = folder, fail

    def write(self, rows: Iterator[pa.RecordBatch], batch: hg.Batch, partition: int) -> Any:
        lines = [json.dumps(row, default=str) for part in rows for row in part.to_pylist()]
        if self.fail == "write" and any('"bad"' in line for line in lines):
            raise ValueError("write was asked to fail")
        path = Path(self.folder) / f"part-{batch.number}-{partition}"
        path.write_text("\n".join(lines))
        return path.name, len(lines)

    def commit(self, batch: hg.Batch, messages: Sequence[Any]) -> None:
        self._note("commit", batch, messages)
        if self.fail == "commit":
            raise ConnectionError("commit was asked to fail")

    def abort(self, batch: hg.Batch, messages: Sequence[Any]) -> None:
        self._note("abort", batch, messages)

    def _note(self, what: str, batch: hg.Batch, messages: Sequence[Any]) -> None:
        with open(Path(self.folder) / "calls", "a") as calls:
            calls.write(json.dumps([what, batch.number, batch.token, messages]) + "\n")

    def config(self) -> Mapping[str, Any]:
        return {"folder": self.folder}


def calls(folder: Path) -> list[list[Any]]:
    path = folder / "calls"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def nothing() -> Iterable[Mapping[str, Any]]:
    return ()


def job_into(sink: hg.Sink, *more: hg.Sink, where: str = "true") -> hg.JobDef:
    @hg.job("own")
    def own(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic("log:rows", schema=SCHEMA)).where(where)
        for number, each in enumerate((sink, *more)):
            rows.sink(f"out{number}", each)

    return own


def built(job: hg.JobDef) -> BuiltJob:
    return job.build(check_connectors=False)


def row(id: int, name: str = "n") -> dict[str, Any]:
    return {"id": id, "name": name, "at": "2026-03-01T09:00:00.123456Z", "tags": [name, "x"],
            "amount": "1.50"}  # fmt: skip


def test_each_task_writes_and_the_driver_commits(job_driver: Make, tmp_path: Path) -> None:
    t = job_driver(job_into(FolderSink(str(tmp_path))), real_sinks={"out0": nothing})
    for n in range(6):
        t.send("rows", row(n), partition=n % 2)
    t.run()
    ((what, number, token, messages),) = calls(tmp_path)
    assert (what, number) == ("commit", 0)
    assert token.startswith("own.r1-") and ".out0-0-" in token
    assert [count for _, count in messages] == [3, 3], "one message a partition, in their order"
    found = [json.loads(line) for name, _ in messages
             for line in (tmp_path / name).read_text().splitlines()]  # fmt: skip
    truth = [{**row(n), "at": "2026-03-01 09:00:00.123456+00:00"} for n in range(6)]
    assert sorted(found, key=lambda r: r["id"]) == truth

    # a batch without rows for the sink is no call; nothing stays behind
    t.run()
    assert len(calls(tmp_path)) == 1
    assert list(Path(t.home).glob("jobs/own/runs/r1/sinks/out0/staged/*")) == []


@pytest.mark.parametrize("point", ["before_sink", "mid_sink", "after_sink"])
def test_a_replayed_batch_has_its_token(job_driver: Make, tmp_path: Path, point: Any) -> None:
    t = job_driver(job_into(FolderSink(str(tmp_path))), real_sinks={"out0": nothing})
    t.send("rows", row(1)).crash(at=point).restore().run()
    t.send("rows", row(2)).run()
    tokens = [token for _, _, token, _ in calls(tmp_path)]
    # only a crash before the home knows that the batch is out lets it come again
    assert Counter(tokens).most_common() == [
        (tokens[0], 2 if point == "mid_sink" else 1), (tokens[-1], 1),
    ]  # fmt: skip
    saved = t.savepoint("here")
    t.send("rows", row(3)).run()
    t.restore(saved).run()
    assert len({token for _, _, token, _ in calls(tmp_path)}) == 4, "another run has other tokens"


def test_a_failing_write_names_the_users_line(job_driver: Make, tmp_path: Path) -> None:
    t = job_driver(job_into(FolderSink(str(tmp_path), "write")), real_sinks={"out0": nothing})
    with pytest.raises(hg.JobFailedError) as failed:
        t.send("rows", row(1, "bad"), partition=1).run()
    text = str(failed.value)
    assert "write failed at " + __file__ in text
    assert "ValueError: write was asked to fail, for partition " in text
    assert [what for what, *_ in calls(tmp_path)] == ["abort"]


def test_a_failing_commit_is_aborted(job_driver: Make, tmp_path: Path) -> None:
    t = job_driver(job_into(FolderSink(str(tmp_path), "commit")), real_sinks={"out0": nothing})
    with pytest.raises(hg.JobFailedError, match=r"commit failed at .*ConnectionError: commit was"):
        t.send("rows", row(1)).run()
    found = calls(tmp_path)
    assert [what for what, *_ in found] == ["commit", "abort"]
    assert found[0][3] == found[1][3] == [["part-0-0", 1]]


def test_a_function_gets_each_batch_as_often_as_it_reads(job_driver: Make) -> None:
    seen: list[tuple[int, str, int, list[int]]] = []

    def keep(rows: DataFrame, batch: hg.Batch) -> None:
        total = rows.agg(F.sum("id")).first()
        assert total is not None
        ids = sorted(r.id for r in rows.where("id > 1").collect())
        seen.append((batch.number, batch.token, total[0], ids))

    job = job_into(hg.ForeachBatchSink(keep), hg.topic("log:copy"))
    t = job_driver(job, real_sinks={"out0": nothing})
    t.send("rows", row(1), row(2), row(3)).run()
    t.send("rows", row(4)).crash(at="mid_sink").restore().run()
    first, *again = seen
    assert (first[0], first[2:]) == (0, (6, [2, 3]))
    assert again == [again[0]] * 2 and (again[0][0], again[0][2:]) == (1, (4, [4]))
    assert sorted(r["id"] for r in t.rows("out1")) == [1, 2, 3, 4]
    assert t.metrics("rows")["records_out"] == 4, "both sinks read their input once"


def test_a_failing_function_names_the_users_line(job_driver: Make) -> None:
    def fail(rows: DataFrame, batch: hg.Batch) -> None:
        raise KeyError("no such table")

    t = job_driver(job_into(hg.ForeachBatchSink(fail)), real_sinks={"out0": nothing})
    with pytest.raises(hg.JobFailedError, match=r"fail failed at .*KeyError: 'no such table'"):
        t.send("rows", row(1)).run()


def test_exactly_once_refuses_what_changes() -> None:
    def keep(rows: DataFrame, batch: hg.Batch) -> None: ...

    built(job_into(hg.ForeachBatchSink(keep), where="rand() > 0.5"))
    with pytest.raises(hg.GraphError, match="gives another value when a batch is replayed"):
        built(job_into(hg.ForeachBatchSink(keep, exactly_once=True), where="rand() > 0.5"))


def test_delivery_is_at_least_once_unless_the_class_says_more(tmp_path: Path) -> None:
    (warning,) = built(job_into(FolderSink(str(tmp_path)))).graph.warnings
    assert "a python:FolderSink sink is at least once" in warning

    class Knows(FolderSink):
        exactly_once = True

    assert built(job_into(Knows(str(tmp_path)))).graph.warnings == ()


def test_what_cannot_be_sent_or_written_is_refused(tmp_path: Path) -> None:
    sink = FolderSink(str(tmp_path))
    sink.open_file = open(tmp_path / "f", "w")  # type: ignore[attr-defined]  # noqa: SIM115
    with pytest.raises(hg.GraphError, match=r"FolderSink\.open_file cannot be sent to the workers"):
        sink.check()

    class Lazy(hg.PythonSink):
        pass

    with pytest.raises(hg.GraphError, match="Lazy has no method write"):
        Lazy().check()
    with pytest.raises(hg.GraphError, match="function must take the rows and the batch"):
        hg.ForeachBatchSink("x")  # type: ignore[arg-type]

    @hg.job("void")
    def void(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic("log:rows", schema=SCHEMA))
        rows.select("id", "NULL AS none").sink("out", FolderSink(str(tmp_path)))

    with pytest.raises(hg.GraphError, match="the column none cannot be handed to Python"):
        built(void)
