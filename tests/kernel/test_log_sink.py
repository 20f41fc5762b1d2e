"""All sinks of a job in one write: what comes out, exactly once, whatever crashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate import jvm
from headgate.connectors.log.files import Record, TopicFiles, partition_of
from tests.kernel.support import (
    assert_contiguous,
    decode,
    log_sink,
    read_stream,
    records,
    run,
    spec,
    values,
)

POINTS = ["before_sink", "mid_sink", "after_sink"]


@pytest.fixture
def source(tmp_path: Path) -> TopicFiles:
    """A topic of two partitions with ten records, ids 0 to 9."""
    files = TopicFiles(tmp_path / "source")
    files.create(2)
    _add(files, 0, 10)
    return files


def _add(files: TopicFiles, first: int, count: int) -> None:
    files.append([Record(json.dumps({"id": n})) for n in range(first, first + count)])


def _ids(spark: SparkSession, source: TopicFiles, **options: object) -> DataFrame:
    return decode(read_stream(spark, source.path, **options), "id BIGINT")


def _one(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("0 AS __hg_sink", "struct(id) AS r0")


def _two(frame: DataFrame) -> DataFrame:
    """Even ids to the first sink, with a key; odd ones to the second."""
    return frame.selectExpr(
        "CAST(id % 2 AS INT) AS __hg_sink",
        "IF(id % 2 = 0, struct(CAST(id AS STRING) AS __hg_key, id), NULL) AS r0",
        "IF(id % 2 = 1, struct(id, id * 1.5D AS half), NULL) AS r1",
    )


def _out(path: Path) -> list[int]:
    return sorted(json.loads(v or "")["id"] for v in values(path))


def _staged(topic: Path) -> list[str]:
    return os.listdir(topic / "_staging")


def _crash(spark: SparkSession, frame: DataFrame, sinks: str, checkpoint: Path, point: str) -> None:
    jvm.arm_crash(spark, json.loads(sinks)["run"], point)
    with pytest.raises(Exception, match=f'"code":"CRASH","point":"{point}"'):
        run(frame, sinks, checkpoint)


def test_should_write_values_as_to_json_does(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    columns = [
        "id", "CONCAT('n\"', id) AS name", "id / 4.0D AS price",
        "IF(id % 3 = 0, NULL, id) AS maybe",
        "named_struct('id', id, 'tags', array('a', NULL, 'é')) AS user",
        "timestamp_millis(id * 1000) AS at", "CAST(id AS DECIMAL(10, 2)) AS dec",
    ]  # fmt: skip
    shaped = _ids(spark, source).selectExpr(*columns)
    run(
        shaped.select(F.lit(0).alias("__hg_sink"), F.struct("*").alias("r0")),
        spec("r1", log_sink("out", tmp_path / "out")),
        tmp_path / "ck",
    )
    batch = spark.read.format(jvm.LOG_SOURCE).option("path", str(source.path)).load()
    expected = (
        decode(batch, "id BIGINT").selectExpr(*columns).select(F.to_json(F.struct("*"))).collect()
    )
    assert sorted(values(tmp_path / "out"), key=str) == sorted(r[0] for r in expected)
    assert len(expected) == 10


def test_should_put_keys_where_python_puts_them(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    frame = _ids(spark, source).selectExpr(
        "0 AS __hg_sink",
        "struct(IF(id = 9, NULL, CONCAT('k\t\\\\é', id)) AS __hg_key, id) AS r0",
    )
    out = tmp_path / "out"
    run(frame, spec("r1", log_sink("out", out, keyed=True, partitions=3)), tmp_path / "ck")
    assert TopicFiles(out).partitions() == 3
    found = {r.key: (r.partition, r.value) for r in records(out)}
    assert len({p for p, _ in found.values()}) > 1
    for n in range(9):
        assert found[f"k\t\\é{n}"] == (partition_of(f"k\t\\é{n}", 3), f'{{"id":{n}}}')
    assert found[None] == (1, '{"id":9}'), "without a key: by the number of the task"
    assert_contiguous(out)


def test_should_write_records_without_keys_by_task(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    out = TopicFiles(tmp_path / "out")
    out.create(3)
    run(
        _one(_ids(spark, source)),
        spec("r1", log_sink("o", out.path, partitions=9)),
        tmp_path / "ck",
    )
    assert out.partitions() == 3, "a topic that is there is taken as it is"
    assert {r.partition for r in records(out.path)} == {0, 1}


def test_should_keep_the_order_of_a_task_and_write_each_sink_its_rows(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    sinks = spec("r1", log_sink("a", a, keyed=True), log_sink("b", b), journal=tmp_path / "journal")
    run(_two(_ids(spark, source, max_records=4)), sinks, tmp_path / "ck")
    assert _out(a) == [0, 2, 4, 6, 8]
    assert _out(b) == [1, 3, 5, 7, 9]
    assert values(b)[0] == '{"id":1,"half":1.5}'
    assert [r.key for r in records(a)] == ["0", "2", "4", "6", "8"]
    assert json.loads(jvm.committed_batches(spark, sinks)) == {"a": 2, "b": 2}
    journal = [json.loads(p.read_text()) for p in sorted((tmp_path / "journal").iterdir())]
    assert [j["batch"] for j in journal] == [0, 1, 2]
    assert sum(j["counters"]["orders"]["records_out"] for j in journal) == 10
    assert sorted(p.name for p in (tmp_path / "journal").iterdir())[0] == "0000000000.json"


def test_should_write_nothing_for_a_sink_without_rows(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    frame = _two(_ids(spark, source).where("id % 2 = 0"))
    sinks = spec("r1", log_sink("a", tmp_path / "a", keyed=True), log_sink("b", tmp_path / "b"))
    run(frame, sinks, tmp_path / "ck")
    assert values(tmp_path / "b") == []
    assert json.loads(jvm.committed_batches(spark, sinks)) == {"a": 0, "b": None}


@pytest.mark.parametrize("point", POINTS)
def test_should_write_a_batch_once_when_it_is_replayed_after_a_crash(
    spark: SparkSession, source: TopicFiles, tmp_path: Path, point: str
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    journal = tmp_path / "journal"
    sinks = spec(f"r-{point}", log_sink("a", a, keyed=True), log_sink("b", b), journal=journal)
    frame = _two(_ids(spark, source))
    _crash(spark, frame, sinks, tmp_path / "ck", point)
    out = {"before_sink": [None, None], "mid_sink": [0, None], "after_sink": [0, 0]}[point]
    assert list(json.loads(jvm.committed_batches(spark, sinks)).values()) == out
    assert journal.exists() == (point == "after_sink")
    run(frame, sinks, tmp_path / "ck")
    _add(source, 10, 4)
    run(frame, sinks, tmp_path / "ck")
    assert _out(a) == [0, 2, 4, 6, 8, 10, 12]
    assert _out(b) == [1, 3, 5, 7, 9, 11, 13]
    assert len(list(journal.iterdir())) == 2
    for topic in (a, b):
        assert_contiguous(topic)
        assert _staged(topic) == []


def test_should_hide_a_batch_that_is_committed_in_part_until_someone_finishes_it(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    sinks = spec("r-hidden", log_sink("out", out))
    frame = _one(_ids(spark, source))
    _crash(spark, frame, sinks, tmp_path / "ck", "mid_sink")
    assert values(out) == []
    assert len(_staged(out)) == 2
    TopicFiles(out).append([Record('{"id":-1}')])  # takes the lock, so it finishes the batch first
    assert [r.offset for r in records(out)] == list(range(11))
    assert values(out)[-1] == '{"id":-1}'
    run(frame, sinks, tmp_path / "ck")
    assert _out(out) == [-1, *range(10)]


def test_should_drain_a_batch_that_is_out_and_remove_what_dead_tasks_left(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    sinks = spec("r-drain", log_sink("out", out), journal=tmp_path / "journal")
    frame = _one(_ids(spark, source))
    _crash(spark, frame, sinks, tmp_path / "ck", "after_sink")
    orphan = out / "_staging" / "store.r-drain.out-0000000000-00001-999-0.part"
    others = out / "_staging" / "store.r-other.out-0000000000-00001-999-0.part"
    orphan.write_text('{"id":1}\n')
    others.write_text('{"id":1}\n')
    for entry in (tmp_path / "journal").iterdir():
        entry.unlink()
    query = run(frame, sinks, tmp_path / "ck")
    assert _out(out) == list(range(10))
    assert query.recentProgress[0].numInputRows == 10, "all rows are read again"
    [entry] = (tmp_path / "journal").iterdir()
    assert json.loads(entry.read_text())["counters"]["orders"]["records_out"] == 10
    assert _staged(out) == [others.name]


def test_should_write_again_for_another_run(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    frame = _one(_ids(spark, source))
    for name in ("r1", "r2"):
        run(frame, spec(name, log_sink("out", tmp_path / "out")), tmp_path / f"ck-{name}")
    assert _out(tmp_path / "out") == sorted([*range(10), *range(10)])


def test_should_leave_nothing_of_a_batch_that_failed(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    source.append([Record("{broken")], partition=0)
    raw = read_stream(spark, source.path)
    frame = _one(decode(raw, "id BIGINT", malformed="fail"))
    out = tmp_path / "out"
    with pytest.raises(Exception, match='"code":"MALFORMED_RECORD"'):
        run(frame, spec("r1", log_sink("out", out)), tmp_path / "ck")
    assert values(out) == []
    # A task that was still running may leave its file behind; the next commit removes it.
    frame = _one(decode(raw, "id BIGINT").where("__hg_bad IS NULL"))
    run(frame, spec("r1", log_sink("out", out)), tmp_path / "ck")
    assert _out(out) == list(range(10))
    assert _staged(out) == []


def test_should_keep_offsets_contiguous_while_python_appends_to_the_same_topic(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    _add(source, 10, 190)
    out = tmp_path / "out"
    TopicFiles(out).create(2)
    stop = threading.Event()
    appended = Counter[str]()

    def append() -> None:
        n = 0
        while not stop.is_set():
            text = json.dumps({"id": -1 - n})
            TopicFiles(out).append([Record(text)], partition=n % 2)
            appended[text] += 1
            n += 1

    other = threading.Thread(target=append)
    other.start()
    try:
        frame = _one(_ids(spark, source, max_records=20))
        run(frame, spec("r1", log_sink("out", out)), tmp_path / "ck")
    finally:
        stop.set()
        other.join()
    assert_contiguous(out)
    assert len(appended) > 10
    ours = Counter({json.dumps({"id": n}, separators=(",", ":")): 1 for n in range(200)})
    assert Counter(values(out)) == appended + ours


@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_should_write_files_once_a_folder_a_batch(
    spark: SparkSession, source: TopicFiles, tmp_path: Path, format: str
) -> None:
    out = tmp_path / "out"
    sink: dict[str, Any] = {"name": "f", "kind": "files", "path": str(out), "format": format}
    if format == "csv":
        sink["options"] = {"header": "true"}
    sinks = spec(f"r-{format}", sink)
    frame = _one(_ids(spark, source, max_records=6))
    _crash(spark, frame, sinks, tmp_path / "ck", "before_sink")
    assert not list(out.glob("batch=*"))
    _crash(spark, frame, sinks, tmp_path / "ck", "mid_sink")
    assert json.loads(jvm.committed_batches(spark, sinks)) == {"f": 0}
    run(frame, sinks, tmp_path / "ck")
    read = spark.read.schema("id BIGINT").format(format)
    got = read.option("header", "true").load(str(out)).select("id").collect()
    assert sorted(r.id for r in got) == list(range(10))
    folders = sorted(p.name for p in out.glob("batch=*"))
    assert folders == [f"batch=r-{format}-0", f"batch=r-{format}-1"]
    assert os.listdir(out / "_staging") == []
    for folder in folders:
        manifest = json.loads((out / folder / "_manifest.json").read_text())
        files = sorted(p for p in os.listdir(out / folder) if p != "_manifest.json")
        assert [f["name"] for f in manifest["files"]] == files
        assert all(f.startswith("part-0000") and format in f for f in files)
        assert [f["bytes"] for f in manifest["files"]] == [
            (out / folder / f).stat().st_size for f in files
        ]
    assert sum(f["rows"] for f in manifest["files"]) == 4


def test_should_not_take_another_sinks_folders_for_its_own(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    def sinks(name: str) -> str:
        path = str(tmp_path / "out of it")  # a space and a dot are escaped in URIs and file names
        return spec("r1", {"name": name, "kind": "files", "path": path, "format": "json"})

    frame = _one(_ids(spark, source))
    run(frame, sinks("one.a"), tmp_path / "ck1")
    with pytest.raises(Exception, match='"code":"FOLDER_TAKEN"') as caught:
        run(frame, sinks("two"), tmp_path / "ck2")
    failure = jvm.explain_failure(caught.value)
    assert failure.sentence == (
        f"{tmp_path}/out of it has files from another sink: "
        "the sink 'one.a' of the job 'store' writes there"
    )
    assert (failure.step, failure.remedy) == ("two", "give each sink a folder of its own")


def test_should_print_the_first_rows_of_a_batch(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    _add(source, 10, 30)
    jvm: Any = spark._jvm
    caught = jvm.java.io.ByteArrayOutputStream()
    before = jvm.java.lang.System.out
    jvm.java.lang.System.setOut(jvm.java.io.PrintStream(caught))
    try:
        sinks = spec("r1", {"name": "show", "kind": "console"})
        run(_one(_ids(spark, source)), sinks, tmp_path / "ck")
    finally:
        jvm.java.lang.System.setOut(before)
    lines = caught.toString().splitlines()
    assert lines[0] == "-- show, batch 0: 40 rows, the first 20"
    assert lines[1] == '{"id":0}'
    assert len(lines) == 21


def test_should_refuse_a_spec_that_does_not_fit(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    frame = _one(_ids(spark, source))
    two = spec("r1", log_sink("a", tmp_path / "a"), log_sink("b", tmp_path / "b"))
    with pytest.raises(Exception, match="columns for 2 sinks"):
        run(frame, two, tmp_path / "ck1")
    with pytest.raises(Exception, match=r"must be one of console, delta, files, .*got 'fax'"):
        run(frame, spec("r1", {"name": "x", "kind": "fax"}), tmp_path / "ck2")


HALTING = """
import sys
from pathlib import Path
from headgate.runtime.session import get_session
from tests.kernel.support import decode, log_sink, read_stream, run, spec
here = Path(sys.argv[1])
frame = decode(read_stream(get_session(), here / "source", max_records=4), "id BIGINT")
frame = frame.selectExpr("0 AS __hg_sink", "struct(id) AS r0")
run(frame, spec("r1", log_sink("out", here / "out")), here / "ck")
"""


# In part: reliability/test_driver_kills.py halts a driver at each point of its commit.
@pytest.mark.long
def test_should_survive_the_death_of_the_driver(
    spark: SparkSession, source: TopicFiles, tmp_path: Path
) -> None:
    root = Path(__file__).parents[2]
    environment = os.environ | {
        "HEADGATE_HALT": "mid_sink:1",
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]),
    }
    died = subprocess.run(
        [sys.executable, "-c", HALTING, str(tmp_path)], env=environment, check=False,
        capture_output=True, timeout=300,
    )  # fmt: skip
    assert died.returncode != 0
    out = tmp_path / "out"
    assert len(values(out)) == 4, died.stderr.decode()[-2000:]
    sinks = spec("r1", log_sink("out", out))
    run(_one(_ids(spark, source, max_records=4)), sinks, tmp_path / "ck")
    assert _out(out) == list(range(10))
    assert_contiguous(out)
    assert _staged(out) == []
