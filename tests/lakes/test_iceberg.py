"""Sinks into Iceberg tables: one snapshot a batch, whoever else writes and whatever fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import IntegerType, LongType, NestedField, StringType
from pyspark.sql import functions as F

import headgate as hg
from headgate.failures import Reason
from headgate.runtime.broker_check import findings
from headgate.testing import JobDriver

from .lake_job import iceberg
from .tables import Rows, iceberg_table, read_iceberg

SCHEMA = (
    "id BIGINT, name STRING, at TIMESTAMP, tags ARRAY<STRUCT<t: STRING>>, amount DECIMAL(10, 2), "
    "place STRUCT<x: INT, y: DOUBLE>, day DATE"
)
Make = Callable[..., JobDriver]


class Lake:
    """The tables in a folder, and jobs that write them."""

    def __init__(self, folder: Path, make: Make) -> None:
        self.folder, self.make = folder, make

    def rows(self, name: str = "t") -> Rows:
        return sorted(read_iceberg(self.folder, f"ice.{name}"), key=lambda r: (r["id"], str(r)))

    def table(self, name: str = "t") -> Table:
        table = iceberg_table(self.folder, f"ice.{name}")
        assert table is not None
        return table

    def sink(self, name: str = "t", **options: Any) -> hg.Sink:
        return iceberg(str(self.folder), name, **options)

    def catalog(self) -> SqlCatalog:
        where = {"uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": f"file://{self.folder}"}
        catalog = SqlCatalog("default", **where)
        catalog.create_namespace_if_not_exists("ice")
        return catalog

    def driver(self, *sinks: hg.Sink, select: tuple[str, ...] = ("*",), **more: Any) -> JobDriver:
        real = {f"out{n}": (lambda: ()) for n, sink in enumerate(sinks)
                if isinstance(sink, hg.IcebergSink)}  # fmt: skip
        return self.make(job_into(*sinks, select=select), real_sinks=real, **more)

    def batches(self, name: str = "t") -> list[int]:
        """The numbers of the batches in the order of the table's snapshots."""
        said = [s.summary.additional_properties for s in self.table(name).snapshots() if s.summary]
        return [int(each["headgate.batch"]) for each in said if "headgate.batch" in each]


@pytest.fixture
def lake(tmp_path: Path, job_driver: Make) -> Lake:
    return Lake(tmp_path, job_driver)


def job_into(*sinks: hg.Sink, select: tuple[str, ...] = ("*",)) -> hg.JobDef:
    @hg.job("lake")
    def job(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic("log:rows", schema=SCHEMA)).select(*select)
        for number, sink in enumerate(sinks):
            rows.sink(f"out{number}", sink)

    return job


def row(id: int, name: str | None = "n", amount: str = "1.50") -> dict[str, Any]:
    return {"id": id, "name": name, "at": f"2026-03-01T09:00:00.{id % 1000000:06d}Z",
            "tags": [{"t": "x"}, {"t": str(id)}], "amount": amount,
            "place": {"x": id, "y": id / 2}, "day": "2026-03-01"}  # fmt: skip


def truth(sent: dict[str, Any]) -> dict[str, Any]:
    at = datetime.fromisoformat(sent["at"]).astimezone(UTC)
    day = datetime.fromisoformat(sent["day"]).date()
    return {**sent, "at": at, "day": day, "amount": Decimal(sent["amount"])}


def by_id(rows: Iterable[dict[str, Any]]) -> Rows:
    return sorted(rows, key=lambda row: (row["id"], str(row)))


def test_rows_are_appended_whole_in_one_file_a_batch(lake: Lake) -> None:
    t = lake.driver(lake.sink(), hg.topic("log:copy"))
    sent = [row(n * 7919, None if n % 3 == 0 else f"name {n}") for n in range(40)]
    for n, each in enumerate(sent[:20]):
        t.send("rows", each, partition=n % 2)
    t.run()
    assert lake.rows() == by_id(map(truth, sent[:20]))
    t.send("rows", *sent[20:]).run().run()
    assert lake.rows() == by_id(map(truth, sent))
    assert lake.batches() == [0, 1]
    assert lake.table().inspect.files().num_rows == 2, "two tasks had rows"
    assert len(t.rows("out1")) == 40 and t.metrics("rows")["records_out"] == 40
    steps = {step.id: step for step in t.built.graph.steps}
    assert steps["out0"].address == "iceberg:ice.t" and "catalog" not in str(steps["out0"].config)


def test_a_commit_that_fails_or_is_in_doubt_is_made_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, todo = SqlCatalog.commit_table, list[str]()
    seen: list[str] = []

    def asked(self: SqlCatalog, table: Table, requirements: Any, updates: Any) -> Any:
        what = todo.pop(0) if todo else ""
        if what == "other":  # somebody else's rows come first
            lake.table().append(pa.table({"id": pa.array([900 + len(seen)], pa.int64())}))
        seen.append(what)
        if what == "down":
            raise ConnectionError("no such server")
        made = commit(self, table, requirements, updates)
        if what == "doubt":
            raise CommitStateUnknownException("the answer was lost")
        if what == "died":
            raise ConnectionError("the driver is gone")
        return made

    t = lake.driver(lake.sink(), lake.sink("m", mode="merge", key=["id"]), select=("id", "name"))
    t.send("rows", row(1)).run()
    monkeypatch.setattr(SqlCatalog, "commit_table", asked)
    todo[:] = ["doubt", "other", "", "", "other"]  # both sinks, and those of the others
    t.send("rows", row(2)).run()
    for what in ("down", "died"):
        todo[:] = [what]
        t.send("rows", row(len(seen) * 10))
        with pytest.raises(hg.JobFailedError, match="an Iceberg catalog or the files of its table"):
            t.run()
        t.restore().run()
    monkeypatch.undo()
    ours = [r["id"] for r in lake.rows() if r["id"] < 900]
    assert len(ours) == len(set(ours)) == 4 and ours[:2] == [1, 2]
    assert [r["id"] for r in lake.rows("m")] == ours
    assert [r["id"] for r in lake.rows() if r["id"] >= 900], "the others' rows are there, too"
    assert lake.batches() == lake.batches("m") == [0, 1, 2, 3]


def test_the_last_row_of_a_key_counts_and_a_null_is_a_key(lake: Lake) -> None:
    old = pa.table({"id": pa.array([1, 5], pa.int64()), "name": ["old", "old"],
                    "note": ["first", "also"]})  # fmt: skip
    lake.catalog().create_table("ice.t", old.schema).append(old)
    select = ("id", "name", "amount")
    t = lake.driver(lake.sink(mode="merge", key=["id", "name"]), select=select)
    with pytest.raises(hg.HeadgateError, match=r"the table lacks amount \(DECIMAL\(10,2\)\)"):
        t.send("rows", row(1, "old", "2.00"), row(2, None, "1.00"), row(2, None, "3.00")).run()
    wider = lake.sink(mode="merge", key=["id", "name"], evolve=True)
    t.restore(job=job_into(wider, select=select)).run()
    t.send("rows", row(2, None, "5.00"), row(3, "c", "7.00"), row(3, "c", "6.00")).run()
    got = [{k: r.get(k) for k in ("id", "name", "note", "amount")} for r in lake.rows()]
    assert got == [
        # what only the table has is null in a row that was replaced
        {"id": 1, "name": "old", "note": None, "amount": Decimal("2.00")},
        {"id": 2, "name": None, "note": None, "amount": Decimal("5.00")},
        {"id": 3, "name": "c", "note": None, "amount": Decimal("6.00")},
        {"id": 5, "name": "old", "note": "also", "amount": None},
    ]


def test_a_merge_of_many_keys_reads_what_it_must(lake: Lake) -> None:
    """More keys than are compared one by one, in a table with partitions."""
    sink = lake.sink(mode="merge", key=["id"], partition_by=["day"])
    t = lake.driver(sink, select=("id", "name", "day"))

    def send(ids: range, name: str, day: int) -> None:
        t.send("rows", *({**row(n, name), "day": f"2026-03-{day:02d}"} for n in ids)).run()

    send(range(0, 600, 2), "a", 1)
    send(range(1000, 1100), "b", 2)
    assert [f.name for f in lake.table().spec().fields] == ["day"]
    before = set(lake.table().inspect.files()["file_path"].to_pylist())
    send(range(0, 600, 3), "c", 2)
    send(range(1, 600, 2), "d", 1)
    after = set(lake.table().inspect.files()["file_path"].to_pylist())
    assert len(before & after) == 1, "the file of other keys stays as it is"
    names = dict.fromkeys(range(1000, 1100), "b") | dict.fromkeys(range(0, 600, 2), "a")
    names |= dict.fromkeys(range(0, 600, 3), "c") | dict.fromkeys(range(1, 600, 2), "d")
    assert {r["id"]: r["name"] for r in lake.rows()} == names and len(lake.rows()) == len(names)


def test_a_table_that_does_not_fit_is_refused_by_its_columns(lake: Lake) -> None:
    catalog = lake.catalog()
    must = NestedField(2, "must", LongType(), required=True)
    others = NestedField(1, "id", IntegerType()), NestedField(3, "name", StringType())
    catalog.create_table("ice.t", Schema(*others, must))
    t = lake.driver(lake.sink(evolve=True), select=("id", "name"))
    with pytest.raises(hg.HeadgateError) as failed:
        t.send("rows", row(1)).run()
    assert "the rows cannot be written to the Iceberg table (iceberg:ice.t)" in str(failed.value)
    assert "id (BIGINT; the table has int)" in str(failed.value) and failed.value.step == "out0"
    assert "must (the table requires a value)" in str(failed.value)
    built = job_into(lake.sink(), lake.sink("new")).build(check_connectors=False)
    first, second = (f for _, f in findings(built, t.spark) if f.about.startswith("iceberg:"))
    assert first.reason is Reason.ICEBERG_TABLE and "must (the table requires" in first.text
    assert second.reason is None and second.text == "iceberg:ice.new: not there, will be created"


def test_a_batch_behind_one_of_another_copy_is_not_taken_for_out(lake: Lake) -> None:
    t = lake.driver(lake.sink(), select=("id",))
    t.send("rows", row(1)).run()
    table = lake.table()
    said = table.snapshots()[-1].summary
    assert said is not None
    writer = said.additional_properties["headgate.writer"]
    table.append(
        pa.table({"id": pa.array([2], pa.int64())}),
        {"headgate.writer": writer, "headgate.batch": "7", "headgate.token": "other"},
    )
    with pytest.raises(hg.JobFailedError, match="already has this batch number"):
        t.send("rows", row(3)).run()
    assert [r["id"] for r in lake.rows()] == [1, 2]


def test_what_cannot_work_is_refused_when_the_job_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(sink: hg.Sink, *select: str) -> None:
        job_into(sink, select=select or ("*",)).build(check_connectors=False)

    with pytest.raises(hg.GraphError, match="mode='merge' needs a key"):
        hg.IcebergSink("a.t", mode="merge").check()
    with pytest.raises(hg.GraphError, match="'mode' must be 'append' or 'merge'"):
        hg.IcebergSink("a.t", mode="upsert").check()  # type: ignore[arg-type]
    with pytest.raises(hg.GraphError, match="a table behind its namespace"):
        hg.IcebergSink("t").check()
    with pytest.raises(hg.GraphError, match="partition_by must name columns of the rows"):
        build(hg.IcebergSink("a.t", partition_by=["year"]))
    with pytest.raises(hg.GraphError, match="cannot be a part of the key of an Iceberg table"):
        build(hg.IcebergSink("a.t", mode="merge", key=["place"]))
    with pytest.raises(hg.GraphError, match="the column none cannot be written to an Iceberg"):
        build(hg.IcebergSink("a.t"), "id", "NULL AS none")

    @hg.job("changes")
    def changes(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic("log:rows", schema=SCHEMA)).key_by("id", "name")
        totals = rows.aggregate("totals", F.sum("amount").alias("total"))
        totals.sink("out", hg.IcebergSink("a.t"))

    with pytest.raises(hg.GraphError, match="this sink cannot delete or replace a row"):
        changes.build(check_connectors=False)
    monkeypatch.setattr("headgate.connectors.extras.has_extra", lambda name: False)
    with pytest.raises(hg.UsageError, match=r"pip install 'headgate\[iceberg\]'"):
        hg.IcebergSink("a.t").need_client(None)  # type: ignore[arg-type]
