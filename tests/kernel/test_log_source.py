"""The log topic as a Spark source: rows, offsets, limits, starts, restarts and damage."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate import jvm
from headgate.base.coded import find_coded
from headgate.connectors.log.files import Record, TopicFiles
from tests.kernel.support import log_sink, read_stream, run, spec, values


def _topic(path: Path, partitions: int = 1) -> TopicFiles:
    files = TopicFiles(path)
    files.create(partitions)
    return files


def _batch(spark: SparkSession, topic: TopicFiles, **options: object) -> DataFrame:
    reader = spark.read.format(jvm.LOG_SOURCE).option("path", str(topic.path))
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def _consume(
    spark: SparkSession, topic: TopicFiles, checkpoint: Path, **options: object
) -> list[Any]:
    """Read what is there now as a stream; gives the progress of each batch with its records."""
    seen: dict[int, list[tuple[int, int]]] = {}

    def keep(frame: DataFrame, batch: int) -> None:
        seen[batch] = [(r.partition, r.offset) for r in frame.collect()]

    query = (
        read_stream(spark, topic.path, **options)
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [(p, sorted(seen[p.batchId])) for p in query.recentProgress if p.batchId in seen]


def test_should_give_every_record_as_it_was_appended(spark: SparkSession, tmp_path: Path) -> None:
    topic = _topic(tmp_path / "t", 2)
    keys = ["a", "tab\t", "\\N", "", "back\\", "日\n"]
    topic.append([Record(f"v{n}", key=k) for n, k in enumerate(keys)], partition=0)
    topic.append([Record(None, key="a"), Record("plain"), Record(""), Record("\r é")], partition=1)
    rows = _batch(spark, topic).selectExpr("*", "unix_millis(timestamp) AS ms").collect()
    got = sorted((r.partition, r.offset, r.ms, r.key, r.value) for r in rows)
    expected = [(r.partition, r.offset, r.timestamp_ms, r.key, r.value) for r in topic.read()]
    assert got == expected
    assert len(got) == 10


def test_should_read_lines_of_any_length(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(4)
    lengths = [0, 1, 2**20 - 1, 2**20, 2**20 + 1, 3_000_000]  # the reader's buffer is 2**20
    lengths += [rng.randrange(9000) for _ in range(900)]
    texts = [rng.choice("abc") * n for n in lengths]
    rng.shuffle(texts)
    topic = _topic(tmp_path / "t")
    topic.append([Record(t) for t in texts])
    rows = (
        _batch(spark, topic).selectExpr("offset", "md5(value) AS hash").orderBy("offset").collect()
    )
    assert [r.hash for r in rows] == [hashlib.md5(t.encode()).hexdigest() for t in texts]


def test_should_share_a_limit_over_partitions_and_read_all(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = _topic(tmp_path / "t", 3)
    for partition, count in enumerate([50, 3, 20]):
        topic.append([Record(str(n)) for n in range(count // 2)], partition=partition)
        topic.append([Record(str(n)) for n in range(count - count // 2)], partition=partition)
    batches = _consume(spark, topic, tmp_path / "ck", max_records=12)
    ends = [json.loads(p.sources[0].endOffset) for p, _ in batches]
    assert ends[:3] == [
        {"0": 4, "1": 3, "2": 5}, {"0": 10, "1": 3, "2": 11}, {"0": 16, "1": 3, "2": 17},
    ]  # fmt: skip
    assert ends[-1] == {"0": 50, "1": 3, "2": 20}
    assert [len(records) for _, records in batches] == [12, 12, 12, 12, 12, 12, 1]
    everything = [r for _, records in batches for r in records]
    assert sorted(everything) == [(p, o) for p, n in enumerate([50, 3, 20]) for o in range(n)]
    assert [p.sources[0].metrics["recordsBehindLatest"] for p, _ in batches][-2:] == ["1", "0"]
    assert json.loads(batches[0][0].sources[0].latestOffset) == {"0": 50, "1": 3, "2": 20}


def test_should_go_on_where_it_stopped_also_inside_a_segment(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = _topic(tmp_path / "t")
    topic.append([Record(str(n)) for n in range(10)])
    first = _consume(spark, topic, tmp_path / "ck", max_records=7)
    assert [len(r) for _, r in first] == [7, 3]
    topic.append([Record(str(n)) for n in range(5)])
    second = _consume(spark, topic, tmp_path / "ck", max_records=4)
    assert [r for _, r in second] == [[(0, n) for n in range(10, 14)], [(0, 14)]]
    assert _consume(spark, topic, tmp_path / "ck") == []


def test_should_skip_lines_without_the_remembered_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = _topic(tmp_path / "t")
    topic.append([Record(f"value {n}", key=f"k{n}") for n in range(50_000)])
    at = spark._jvm.org.apache.spark.sql.headgate.sources.log  # type: ignore[union-attr]
    stream = at.LogStream(at.LogOptions(str(topic.path), "earliest", 0), "")
    start, end = stream.deserializeOffset('{"0":31234}'), stream.deserializeOffset('{"0":31236}')
    stream.prepareForTriggerAvailableNow()
    [part] = stream.planInputPartitions(start, end)
    reader = stream.createReaderFactory().createReader(part)
    got = []
    while reader.next():
        row = reader.get()
        got += [row.getLong(3), str(row.getUTF8String(0)), str(row.getUTF8String(1))]
    reader.close()
    assert got == [31234, "k31234", "value 31234", 31235, "k31235", "value 31235"]


def test_should_stop_at_the_end_as_it_was_when_an_available_now_query_started(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = _topic(tmp_path / "t")
    topic.append([Record(str(n)) for n in range(6)])
    total = 0

    def more(frame: DataFrame, batch: int) -> None:
        nonlocal total
        total += frame.count()
        if total < 20:  # a query that goes on would never end
            topic.append([Record("later")])

    query = (
        read_stream(spark, topic.path, max_records=2)
        .writeStream.foreachBatch(more)
        .option("checkpointLocation", str(tmp_path / "ck"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert total == 6
    assert topic.end_offsets() == {0: 9}


def test_should_always_have_one_partition_per_topic_partition(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = _topic(tmp_path / "t", 4)
    topic.append([Record("x")], partition=2)
    frame = _batch(spark, topic)
    assert frame.rdd.getNumPartitions() == 4
    assert frame.selectExpr("spark_partition_id() AS task", "partition").collect() == [(2, 2)]


def test_should_take_up_partitions_that_were_added(spark: SparkSession, tmp_path: Path) -> None:
    topic = _topic(tmp_path / "t", 1)
    topic.append([Record("a")], partition=0)
    _consume(spark, topic, tmp_path / "ck", starting="latest")
    (topic.path / "topic.json").write_text('{"version":1,"partitions":3}')
    topic.append([Record("b"), Record("c")], partition=2)
    [(progress, seen)] = _consume(spark, topic, tmp_path / "ck", starting="latest")
    assert seen == [(2, 0), (2, 1)], "an added partition is read from its beginning"
    assert json.loads(progress.sources[0].endOffset) == {"0": 1, "1": 0, "2": 2}


def test_should_start_where_it_is_told(spark: SparkSession, tmp_path: Path) -> None:
    topic = _topic(tmp_path / "t")
    topic.append([Record("old")])
    time.sleep(0.005)
    between = int(time.time() * 1000)
    time.sleep(0.005)
    topic.append([Record("new")])

    def read(starting: object) -> list[str]:
        return [r.value for r in _batch(spark, topic, starting=starting).collect()]

    assert read("earliest") == ["old", "new"]
    assert read(between) == ["new"]
    assert read("latest") == []
    with pytest.raises(Exception, match="earliest, latest or milliseconds"):
        read("yesterday")


def test_should_decide_once_where_it_starts(spark: SparkSession, tmp_path: Path) -> None:
    topic = _topic(tmp_path / "t")
    topic.append([Record("before")])
    at = spark._jvm.org.apache.spark.sql.headgate.sources.log  # type: ignore[union-attr]

    def first() -> str:
        options = at.LogOptions(str(topic.path), "latest", 0)
        return str(at.LogStream(options, str(tmp_path / "ck" / "sources" / "0")).initialOffset())

    before = first()
    topic.append([Record("after")])
    assert before == first() == '{"0":1}'


def test_should_replay_its_first_batch_from_the_same_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = _topic(tmp_path / "t")
    topic.append([Record("before")])
    frame = read_stream(spark, topic.path, starting="latest").selectExpr(
        "0 AS __hg_sink", "struct(value) AS r0"
    )
    sinks = spec("r-latest", log_sink("out", tmp_path / "out"))
    jvm.arm_crash(spark, "r-latest", "before_sink")
    with pytest.raises(Exception, match='"code":"CRASH"'):
        run(frame, sinks, tmp_path / "ck")
    topic.append([Record("after")])  # "latest" is somewhere else now
    run(frame, sinks, tmp_path / "ck")
    assert values(tmp_path / "out") == ['{"value":"after"}']


def test_should_not_take_the_start_of_another_topic(spark: SparkSession, tmp_path: Path) -> None:
    topic = _topic(tmp_path / "t")
    topic.append([Record("a"), Record("b")])
    folder = tmp_path / "ck" / "sources" / "0"
    folder.mkdir(parents=True)
    (folder / "initial.json").write_text('{"topic":"/elsewhere","offset":{"0":1}}')
    [(_, seen)] = _consume(spark, topic, tmp_path / "ck")
    assert seen == [(0, 0), (0, 1)]


def _fails(action: Callable[[], object]) -> str:
    with pytest.raises(Exception) as error:
        action()
    return str(error.value)


def _reported(message: str, code: str) -> Any:
    found = find_coded(message)
    assert found is not None and found.code == code
    return found.fields


def test_should_name_a_topic_that_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    nowhere = TopicFiles(tmp_path / "nowhere")
    message = _fails(lambda: _batch(spark, nowhere).collect())
    assert _reported(message, "TOPIC_MISSING") == {"path": str(nowhere.path)}
    assert '"code":"TOPIC_MISSING"' in _fails(lambda: _consume(spark, nowhere, tmp_path / "ck"))


def test_should_name_offsets_that_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    topic = _topic(tmp_path / "t")
    for text in "abcd":
        topic.append([Record(text)])
    _consume(spark, topic, tmp_path / "ck", max_records=2)
    (tmp_path / "ck" / "commits" / "1").unlink()  # as after a crash: batch 1 runs again
    for segment in topic.segments(0)[:3]:
        (topic.path / "partition-00000" / segment.name).unlink()
    message = _fails(lambda: _consume(spark, topic, tmp_path / "ck"))
    gone = _reported(message, "OFFSET_GONE")
    assert (gone["partition"], gone["from"], gone["to"]) == (0, 2, 4)
    assert (gone["first"], gone["end"]) == (3, 4)


def test_should_refuse_a_topic_that_is_shorter_than_what_was_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = _topic(tmp_path / "t")
    topic.append([Record("a"), Record("b")])
    _consume(spark, topic, tmp_path / "ck")
    (topic.path / "partition-00000" / topic.segments(0)[0].name).unlink()
    topic.append([Record("another topic by the same name")])
    assert '"code":"OFFSET_GONE"' in _fails(lambda: _consume(spark, topic, tmp_path / "ck"))


def test_should_name_a_hole(spark: SparkSession, tmp_path: Path) -> None:
    topic = _topic(tmp_path / "t")
    for text in "abc":
        topic.append([Record(text)])
    (topic.path / "partition-00000" / topic.segments(0)[1].name).unlink()
    message = _fails(lambda: _batch(spark, topic).collect())
    hole = _reported(message, "OFFSET_HOLE")
    assert (hole["partition"], hole["after"], hole["next"]) == (0, 1, 2)


def test_should_name_a_segment_that_is_short_of_records(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = _topic(tmp_path / "t")
    topic.append([Record("a"), Record("b")])
    (topic.path / "partition-00000" / topic.segments(0)[0].name).write_text("a\n")
    assert '"code":"SEGMENT_SHORT"' in _fails(lambda: _batch(spark, topic).collect())
