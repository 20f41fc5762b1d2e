"""Sinks into Delta tables, read back with delta-rs and compared with plain Python."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log.files import Record, TopicFiles
from headgate.testing import JobDriver

from .lake_job import tables
from .tables import ICEBERG, TABLES, Rows, check_tables, order, read, read_iceberg

SCHEMA = (
    "id BIGINT, name STRING, at TIMESTAMP, tags ARRAY<STRING>, amount DECIMAL(10, 2), "
    "place STRUCT<x: INT, y: DOUBLE>"
)
Make = Callable[..., JobDriver]


def by_id(rows: Iterable[dict[str, Any]]) -> Rows:
    return sorted(rows, key=lambda row: (row["id"], str(row)))


def row(id: int, name: str | None = "n", amount: str = "1.50") -> dict[str, Any]:
    return {"id": id, "name": name, "at": f"2026-03-01T09:00:00.{id % 1000000:06d}Z",
            "tags": ["x", str(id)], "amount": amount, "place": {"x": id, "y": id / 2}}  # fmt: skip


def truth(sent: dict[str, Any]) -> dict[str, Any]:
    at = datetime.fromisoformat(sent["at"]).astimezone(UTC)
    return {**sent, "at": at, "amount": Decimal(sent["amount"])}


def job_into(*sinks: hg.Sink, select: tuple[str, ...] = ("*",)) -> hg.JobDef:
    @hg.job("lake")
    def lake(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic("log:rows", schema=SCHEMA)).select(*select)
        for number, sink in enumerate(sinks):
            rows.sink(f"out{number}", sink)

    return lake


def test_rows_are_appended_once_and_whole(job_driver: Make, tmp_path: Path) -> None:
    path = tmp_path / "table"
    t = job_driver(job_into(hg.DeltaSink(str(path)), hg.topic("log:copy")),
                   real_sinks={"out0": lambda: read(path)})  # fmt: skip
    sent = [row(n * 7919, None if n % 3 == 0 else f"name {n}") for n in range(40)]
    for n, each in enumerate(sent[:20]):
        t.send("rows", each, partition=n % 2)
    t.run()
    assert by_id(read(path)) == by_id(map(truth, sent[:20]))
    t.send("rows", *sent[20:]).run().run()
    assert by_id(read(path)) == by_id(map(truth, sent))
    assert len(t.rows("out1")) == 40 and t.metrics("rows")["records_out"] == 40


@pytest.mark.slow
def test_no_crash_and_no_restore_changes_the_tables(job_driver: Make, tmp_path: Path) -> None:
    t = job_driver(
        tables,
        params={"lake": str(tmp_path), "orders": "log:orders"},
        real_sinks={
            **{name: (lambda at=tmp_path / name: read(at)) for name in TABLES},
            **{
                name: (lambda at=name: read_iceberg(tmp_path, at.replace("_", ".")))
                for name in ICEBERG
            },
        },
    )
    sent = 0

    def send(count: int) -> JobDriver:
        nonlocal sent
        for n in range(sent, sent + count):
            t.send("orders", order(n), partition=n % 2)
        sent += count
        return t

    for point in ("before_sink", "mid_sink", "after_sink", "before_commit"):
        send(30).crash(at=point).restore().run()  # type: ignore[arg-type]
    check_tables(tmp_path, Counter(range(sent)))
    saved = t.savepoint("here")
    send(40).run()
    t.restore(saved).run()
    again = Counter(range(sent)) + Counter(range(120, 160))
    check_tables(tmp_path, again)
    table = DeltaTable(tmp_path / "days")
    assert table.metadata().partition_columns == ["day"]
    # few files: one a day and batch, and one a task and batch; none that the log does not name
    assert (
        len(table.file_uris()) <= 3 * 6 and len(DeltaTable(tmp_path / "all").file_uris()) <= 2 * 6
    )
    for name in ("all", "days", "paid"):
        known = {Path(uri).name for uri in DeltaTable(tmp_path / name).file_uris()}
        if name != "paid":  # a merge replaces files
            assert {file.name for file in (tmp_path / name).rglob("*.parquet")} == known
    assert list(tmp_path.glob("*/_headgate/*")) == []


def test_the_last_row_of_a_key_counts(job_driver: Make, tmp_path: Path) -> None:
    path = tmp_path / "newest"
    old = pa.table({"id": pa.array([1, 5], pa.int64()), "name": ["old", "old"],
                    "note": ["kept", "also"]})  # fmt: skip
    write_deltalake(str(path), old)
    sink = hg.DeltaSink(str(path), mode="merge", key=["id", "name"])
    t = job_driver(
        job_into(sink, select=("id", "name", "amount")), real_sinks={"out0": lambda: read(path)}
    )
    with pytest.raises(hg.JobFailedError, match=r"the table lacks amount \(DECIMAL\(10,2\)\)"):
        t.send("rows", row(1, "old", "2.00"), row(2, None, "1.00"), row(2, None, "3.00")).run()
    wider = hg.DeltaSink(str(path), mode="merge", key=["id", "name"], evolve=True)
    t.restore(job=job_into(wider, select=("id", "name", "amount"))).run()
    t.send("rows", row(2, None, "5.00"), row(3, "c", "7.00"), row(3, "c", "6.00")).run()
    assert by_id(read(path)) == [
        {"id": 1, "name": "old", "note": "kept", "amount": Decimal("2.00")},
        {"id": 2, "name": None, "note": None, "amount": Decimal("5.00")},
        {"id": 3, "name": "c", "note": None, "amount": Decimal("6.00")},
        {"id": 5, "name": "old", "note": "also", "amount": None},
    ]


def test_others_write_the_table_between_batches(job_driver: Make, tmp_path: Path) -> None:
    path = tmp_path / "shared"
    t = job_driver(
        job_into(hg.DeltaSink(str(path)), select=("id", "name")),
        real_sinks={"out0": lambda: read(path)},
    )
    t.send("rows", row(1), row(2)).run()
    write_deltalake(
        str(path),
        pa.table({"id": pa.array([3], pa.int64()), "name": ["x"]}),
        mode="append",
    )
    t.send("rows", row(4)).run()
    assert [r["id"] for r in by_id(read(path))] == [1, 2, 3, 4]

    # the files of the tasks cannot be taken as they are any more: Delta's own writer checks them
    DeltaTable(path).alter.add_constraint({"small": "id < 100"})
    t.send("rows", row(5)).crash(at="mid_sink").restore().run()
    assert [r["id"] for r in by_id(read(path))] == [1, 2, 3, 4, 5]
    with pytest.raises(hg.JobFailedError, match=r"(?i)small"):
        t.send("rows", row(500)).run()
    assert len(read(path)) == 5


def test_a_table_of_another_shape_is_refused_by_the_columns(
    job_driver: Make, tmp_path: Path
) -> None:
    path = tmp_path / "other"
    write_deltalake(str(path), pa.table({"id": ["text"], "name": ["x"]}))
    t = job_driver(
        job_into(hg.DeltaSink(str(path), evolve=True), select=("id", "name")),
        real_sinks={"out0": lambda: read(path)},
    )
    with pytest.raises(hg.JobFailedError) as failed:
        t.send("rows", row(1)).run()
    assert "the rows do not fit the Delta table" in str(failed.value)
    assert "id (BIGINT; the table has STRING)" in str(failed.value) and failed.value.step == "out0"


def test_rows_that_vectors_delete_stay_deleted(job_driver: Make, tmp_path: Path) -> None:
    """delta-rs does not read such tables: rows are counted in the log, and looked for in files."""
    path = tmp_path / "vectors"
    job = job_into(hg.DeltaSink(str(path), mode="merge", key=["id"]), select=("id", "name"))
    t = job_driver(job, real_sinks={"out0": lambda: ()})
    default = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
    t.spark.conf.set(default, "true")
    try:
        t.send("rows", *(row(n, "old") for n in range(9))).run()
    finally:
        t.spark.conf.unset(default)
    t.send("rows", row(2, "new"), row(5, "new")).run()
    assert list(path.rglob("deletion_vector_*.bin")), "the merge has marked rows"
    t.send("rows", row(2, "newest"), row(9, "new")).run()
    live: dict[str, int] = {}
    for commit in sorted((path / "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text().splitlines()):
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
        for action in map(json.loads, commit.read_text().splitlines()):
            if add := action.get("add"):
                marked = (add.get("deletionVector") or {}).get("cardinality", 0)
                live[add["path"]] = json.loads(add["stats"])["numRecords"] - marked
    assert sum(live.values()) == 10
    names = {2: "newest", 5: "new", 9: "new"}
    wanted = [{"id": n, "name": names.get(n, "old")} for n in range(10)]
    there = [each for file in live for each in pq.ParquetFile(path / file).read().to_pylist()]
    assert all(each in there for each in wanted)


def test_bounds_that_a_part_of_a_file_lacks_are_left_out(job_driver: Make, tmp_path: Path) -> None:
    path = tmp_path / "bounds"
    job = job_into(hg.DeltaSink(str(path)), select=("id", "name", "place"))
    t = job_driver(job, parallelism=1, real_sinks={"out0": lambda: read(path)})
    t.spark.conf.set("parquet.block.size", "1024")
    try:
        # Parquet keeps no bounds of texts as long as those in the middle
        rows = [row(n, "z" * 3000 if 100 <= n < 200 else None if n < 100 else "m")
                for n in range(400)]  # fmt: skip
        t.send("rows", *rows).run()
    finally:
        t.spark.conf.unset("parquet.block.size")
    (file,) = path.glob("*.parquet")
    groups = pq.ParquetFile(file).metadata
    has = {groups.row_group(n).column(1).statistics.has_min_max
           for n in range(groups.num_row_groups)}  # fmt: skip
    assert has == {True, False}, "some groups of rows have bounds of the names"
    (add,) = [a["add"] for a in _actions(path) if "add" in a]
    stats = json.loads(add["stats"])
    assert stats["minValues"] == {"id": 0, "place": {"x": 0, "y": 0.0}}
    assert stats["maxValues"] == {"id": 399, "place": {"x": 399, "y": 199.5}}
    assert stats["numRecords"] == 400


def _actions(path: Path) -> Rows:
    commits = sorted((path / "_delta_log").glob("*.json"))
    return [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]


def test_a_batch_behind_one_of_another_copy_is_not_taken_for_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "copied"
    topic = TopicFiles(tmp_path / "rows")
    topic.create(1)

    @hg.job("copied")
    def copied(job: hg.Job) -> None:
        job.source("rows", hg.topic(f"log:{topic.path}", schema="id BIGINT")).sink(
            "out", hg.DeltaSink(str(path))
        )

    topic.append([Record('{"id": 1}')])
    handle = hg.start(copied, spark=spark, home=str(tmp_path / "home"))
    until = time.monotonic() + 60
    while not read(path):
        assert time.monotonic() < until
        time.sleep(0.05)
    (writer,) = [a["txn"] for a in _actions(path) if "txn" in a]
    ahead = CommitProperties(app_transactions=[Transaction(writer["appId"], 7)])
    more = pa.table({"id": pa.array([2], pa.int64())})
    write_deltalake(str(path), more, mode="append", commit_properties=ahead)
    topic.append([Record('{"id": 3}')])
    with pytest.raises(hg.HeadgateError, match="already has this batch number"):
        handle.wait(timeout="60 seconds")
    assert by_id([{"id": r["id"]} for r in read(path)]) == [{"id": 1}, {"id": 2}]


def test_many_small_files_become_one(job_driver: Make, tmp_path: Path) -> None:
    @hg.job("small")
    def small(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic("log:rows", schema=SCHEMA)).select("id")
        once = rows.key_by("id").dedupe("once")
        once.sink("out", hg.DeltaSink(str(tmp_path / "small")))

    t = job_driver(small, parallelism=8, real_sinks={"out": lambda: read(tmp_path / "small")})
    t.send("rows", *(row(n * 31) for n in range(100))).run()
    assert [r["id"] for r in by_id(read(tmp_path / "small"))] == [n * 31 for n in range(100)]
    assert len(list((tmp_path / "small").glob("*.parquet"))) == 1, "eight tasks had rows"


def test_what_cannot_work_is_refused_when_the_job_is_built() -> None:
    def build(sink: hg.Sink, *select: str) -> None:
        job_into(sink, select=select or ("*",)).build(check_connectors=False)

    with pytest.raises(hg.GraphError, match="mode='merge' needs a key"):
        hg.DeltaSink("t", mode="merge").check()
    with pytest.raises(hg.GraphError, match="mode must be 'append' or 'merge'"):
        hg.DeltaSink("t", mode="upsert").check()  # type: ignore[arg-type]
    with pytest.raises(hg.GraphError, match="key must be names of columns"):
        hg.DeltaSink("t", mode="merge", key="id")
    with pytest.raises(hg.GraphError, match="partition_by must name columns of the rows"):
        build(hg.DeltaSink("t", partition_by=["day"]))
    with pytest.raises(hg.GraphError, match="there must be a column beside"):
        build(hg.DeltaSink("t", partition_by=["id"]), "id")
    with pytest.raises(hg.GraphError, match="the column none cannot be written to a Delta table"):
        build(hg.DeltaSink("t"), "id", "NULL AS none")

    @hg.job("changes")
    def changes(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic("log:rows", schema=SCHEMA)).key_by("id", "name")
        totals = rows.aggregate("totals", F.sum("amount").alias("total"))
        totals.sink("out", hg.DeltaSink("t", mode="merge", key=["id"]))

    with pytest.raises(hg.GraphError, match=r"key=\['id', 'name'\]"):
        changes.build(check_connectors=False)
