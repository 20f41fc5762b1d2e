"""DataSourceSink: data sources of PySpark's by class and by name, rows and Arrow, crashes."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

import headgate as hg
from headgate.graph.plan import BuiltJob
from headgate.testing import JobDriver

SCHEMA = "id BIGINT, at TIMESTAMP, tags ARRAY<STRING>, amount DECIMAL(10, 2), in STRUCT<a: INT>"
Make = Callable[..., JobDriver]


@dataclass
class Part(WriterCommitMessage):
    file: str


class FolderWriter(DataSourceStreamWriter):
    """A file a partition; the driver writes down which of them count."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        assert not overwrite
        self.folder, self.fail = Path(options["Folder"]), options.get("fail")
        self.token, self.names = options.get("headgate.token"), schema.names

    def write(self, iterator: Iterator[Any]) -> Any:
        rows = [repr(tuple(self._plain(row))) for row in iterator]
        if self.fail == "write" and any("'bad'" in row for row in rows):
            raise ValueError("write was asked to fail with " + PASSWORD)
        if self.fail == "message":
            return len(rows)
        return self._part(rows)

    def _plain(self, row: Any) -> Any:
        assert isinstance(row, Row) and row.__fields__ == self.names
        return row.asDict(recursive=True).values()

    def _part(self, rows: list[str]) -> Part:
        path = self.folder / f"part-{abs(hash(tuple(rows)))}"
        path.write_text("\n".join(rows))
        return Part(path.name)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._note("commit", messages, batchId)
        if self.fail == "commit":
            raise ConnectionError("commit was asked to fail")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._note("abort", messages, batchId)

    def _note(self, what: str, messages: list[Any], number: int) -> None:
        assert all(isinstance(message, Part) for message in messages)
        note = [what, number, [message.file for message in messages], self.token]
        with open(self.folder / "calls", "a") as calls:
            calls.write(json.dumps(note) + "\n")


class ArrowFolderWriter(FolderWriter, DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Any:
        return self._part([repr(r["id"]) for part in iterator for r in part.to_pylist()])


class FolderSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "folder_of_rows"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        if self.options.get("fail") == "writer":
            raise KeyError("no such folder")
        made = ArrowFolderWriter if self.options.get("arrow") == "true" else FolderWriter
        return made(self.options, schema, overwrite)


PASSWORD = "a-long-password"


def nothing() -> Iterable[Mapping[str, Any]]:
    return ()


def into(folder: Path, source: Any = FolderSource, once: bool = False, **options: Any) -> hg.JobDef:
    options = {"folder": str(folder), "password": PASSWORD, **options}

    @hg.job("own")
    def own(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic("log:rows", schema=SCHEMA))
        rows.sink("out", hg.DataSourceSink(source, options=options, exactly_once=once))

    return own


def calls(folder: Path) -> list[list[Any]]:
    path = folder / "calls"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def committed(folder: Path) -> list[str]:
    """Rows of the batches that were committed, each as often as it was."""
    files = [file for what, _, files, _ in calls(folder) if what == "commit" for file in files]
    return sorted(line for file in files for line in (folder / file).read_text().splitlines())


def row(id: int, tag: str = "x") -> dict[str, Any]:
    return {"id": id, "at": "2026-03-01T09:00:00.123456Z", "tags": [tag], "amount": "1.50",
            "in": {"a": id * 7}}  # fmt: skip


def as_spark(id: int) -> str:
    """A row as Spark hands it to a data source: times are those of the machine."""
    at = datetime.datetime(2026, 3, 1, 9, 0, 0, 123456, datetime.UTC).astimezone()
    return repr((id, at.replace(tzinfo=None), ["x"], Decimal("1.50"), {"a": id * 7}))


def built(job: hg.JobDef, spark: SparkSession | None = None) -> BuiltJob:
    return job.build(check_connectors=False, spark=spark)


@pytest.mark.parametrize("point", ["mid_sink", "after_sink"])
def test_by_name_a_crash_repeats_a_batch_or_not(
    job_driver: Make, headgate_spark: SparkSession, tmp_path: Path, point: Any
) -> None:
    headgate_spark.dataSource.register(FolderSource)
    t = job_driver(into(tmp_path, "Folder_Of_Rows"), real_sinks={"out": nothing})
    for n in range(4):
        t.send("rows", row(n * 1000), partition=n % 2)
    t.run()
    assert [(what, number, len(files)) for what, number, files, _ in calls(tmp_path)] == [
        ("commit", 0, 2)
    ]
    assert committed(tmp_path) == sorted(as_spark(n * 1000) for n in range(4))

    t.send("rows", row(7)).crash(at=point).restore().run()
    t.send("rows", row(8)).run()
    # only a crash before the home knows that the batch is out lets it come again
    twice = point == "mid_sink"
    assert [call[:2] for call in calls(tmp_path)][1:] == [["commit", 1]] * (1 + twice) + [
        ["commit", 2]
    ]
    found = Counter(committed(tmp_path))
    assert found == {**{as_spark(n * 1000): 1 for n in range(4)}, as_spark(7): 1 + twice,
                     as_spark(8): 1}  # fmt: skip
    assert {token for *_, token in calls(tmp_path)} == {None}, "no token unless it is asked for"


def test_by_class_in_arrow_with_the_token(job_driver: Make, tmp_path: Path) -> None:
    t = job_driver(into(tmp_path, once=True, arrow="true"), real_sinks={"out": nothing})
    t.send("rows", row(1)).run()
    saved = t.savepoint("here")
    t.send("rows", row(2)).crash(at="mid_sink").restore().run()
    t.restore(saved).run()
    tokens = [token for *_, token in calls(tmp_path)]
    assert tokens[1] == tokens[2] and len(set(tokens)) == 3, "the same if the batch comes again"
    assert [number for _, number, *_ in calls(tmp_path)] == [0, 1, 1, 1], "a restore uses 1 again"
    assert committed(tmp_path) == ["1", "2", "2", "2"]


@pytest.mark.parametrize(
    ("fail", "line", "ended"),
    [
        ("write", r"write failed at .*test_data_source_sink\.py:\d+ with ValueError: write was"
                  r" asked to fail with \*{6}, for partition", ["abort"]),
        ("message", "must return a WriterCommitMessage or None, got int", ["abort"]),
        ("commit", r"commit failed at .*sink\.py:\d+ with ConnectionError", ["commit", "abort"]),
        ("writer", r"streamWriter failed at .*sink\.py:\d+ with KeyError: 'no such folder'", []),
    ],
)  # fmt: skip
def test_a_failure_names_the_users_line(
    job_driver: Make, tmp_path: Path, fail: str, line: str, ended: list[str]
) -> None:
    t = job_driver(into(tmp_path, fail=fail), real_sinks={"out": nothing})
    with pytest.raises(hg.JobFailedError, match=line) as failed:
        t.send("rows", row(1, "bad"), partition=1).run()
    assert PASSWORD not in str(failed.value)
    assert [what for what, *_ in calls(tmp_path)] == ended


def test_the_graph_names_the_source_and_hides_secrets(
    headgate_spark: SparkSession, tmp_path: Path
) -> None:
    headgate_spark.dataSource.register(FolderSource)
    by_class = built(into(tmp_path)).graph
    assert by_class.step("out").address == "data_source:folder_of_rows"
    assert by_class.step("out").config == {"own": {"folder": str(tmp_path), "password": "******"}}
    (warning,) = by_class.warnings
    assert "a data_source:folder_of_rows sink is at least once" in warning
    named = built(into(tmp_path, "FOLDER_OF_ROWS"), headgate_spark).graph
    assert named.steps == by_class.steps, "another way to say the same"
    assert built(into(tmp_path, once=True)).graph.warnings == ()


def test_what_is_no_data_source_is_refused(tmp_path: Path) -> None:
    class Readable(DataSource):
        pass

    with pytest.raises(hg.GraphError, match="no Python data source 'parquet' is registered"):
        built(into(tmp_path, "parquet"))
    with pytest.raises(hg.GraphError, match="source must be a Python data source"):
        hg.DataSourceSink(FolderWriter)  # type: ignore[arg-type]
    with pytest.raises(hg.GraphError, match="the data source Readable has no stream writer"):
        hg.DataSourceSink(Readable).check()
