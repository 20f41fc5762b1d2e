"""A log topic's files from Python, without Spark."""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.base.errors import HeadgateError, NotFoundError, UsageError
from headgate.connectors.log.files import LogRecord, Record, Segment, TopicFiles, partition_of
from tests.kernel.support import assert_contiguous


@pytest.fixture
def topic(tmp_path: Path) -> TopicFiles:
    files = TopicFiles(tmp_path / "topic")
    files.create(partitions=3)
    return files


def _shape(records: list[LogRecord]) -> list[tuple[int, int, str | None, str | None]]:
    return [(r.partition, r.offset, r.key, r.value) for r in records]


def test_should_create_a_topic_once(tmp_path: Path) -> None:
    files = TopicFiles(str(tmp_path / "a" / "topic"))
    assert not files.exists()
    files.create(partitions=2)
    assert files.exists()
    assert files.partitions() == 2
    assert json.loads((tmp_path / "a" / "topic" / "topic.json").read_text()) == {
        "version": 1, "partitions": 2, "id": files.id(),
    }  # fmt: skip
    other = TopicFiles(str(tmp_path / "b"))
    other.create(partitions=2)
    assert files.id() and files.id() != other.id()
    assert files.end_offsets() == {0: 0, 1: 0}
    with pytest.raises(UsageError, match="already"):
        files.create(partitions=2)
    with pytest.raises(UsageError, match="at least one"):
        TopicFiles(tmp_path / "b").create(partitions=0)


def test_should_say_how_to_create_a_topic_that_is_missing(tmp_path: Path) -> None:
    files = TopicFiles(tmp_path / "nothing")
    for call in (files.partitions, files.end_offsets, files.read, lambda: files.append([])):
        with pytest.raises(NotFoundError, match="headgate topic create log:"):
            call()


def test_should_give_back_what_was_appended(topic: TopicFiles) -> None:
    assert topic.append([Record('{"a":1}'), Record("é日🙂\r")], partition=1) == {1: 2}
    assert topic.append([Record("third")], partition=1) == {1: 3}
    assert topic.append([]) == {}
    assert _shape(list(topic.read())) == [
        (1, 0, None, '{"a":1}'), (1, 1, None, "é日🙂\r"), (1, 2, None, "third"),
    ]  # fmt: skip
    assert topic.start_offsets() == {0: 0, 1: 0, 2: 0}
    assert topic.end_offsets() == {0: 0, 1: 3, 2: 0}


def test_should_keep_keys_with_any_characters(topic: TopicFiles) -> None:
    keys = ["plain", "", "tab\there", "new\nline", "back\\slash", "\\N", "\\t", "\r", "ключ"]
    topic.append([Record(f'"{n}"', key=key) for n, key in enumerate(keys)], partition=0)
    assert [(r.key, r.value) for r in topic.read()] == [
        (key, f'"{n}"') for n, key in enumerate(keys)
    ]


def test_should_keep_deletions_and_records_with_and_without_keys_in_order(
    topic: TopicFiles,
) -> None:
    records = [Record("1"), Record("2", key="a"), Record(None, key="a"), Record("3"), Record("")]
    topic.append(records, partition=2)
    assert [Record(r.value, r.key) for r in topic.read()] == records
    assert [s.keyed for s in topic.segments(2)] == [False, True, False]
    assert [r.offset for r in topic.read()] == [0, 1, 2, 3, 4]


def test_should_spread_records_by_key_or_in_turn(topic: TopicFiles) -> None:
    topic.append([Record("{}", key=f"k{n}") for n in range(300)])
    for record in topic.read():
        assert record.key is not None
        assert record.partition == partition_of(record.key, 3)
    assert min(topic.end_offsets().values()) > 70
    before = topic.end_offsets()
    topic.append([Record(str(n)) for n in range(7)])
    assert [topic.end_offsets()[p] - before[p] for p in range(3)] == [3, 2, 2]


def test_should_keep_the_partition_of_a_key_for_ever() -> None:
    # topics on disks out there depend on these
    keys = ["", "0", "42", "user-1", "ключ", "🙂"]
    assert [partition_of(k, 1000) for k in keys] == [0, 334, 796, 313, 54, 101]


def test_should_read_from_offsets_and_times(topic: TopicFiles) -> None:
    topic.append([Record(f"a{n}") for n in range(3)], partition=0)
    time.sleep(0.005)
    between = int(time.time() * 1000)
    topic.append([Record(f"b{n}") for n in range(3)], partition=0)
    topic.append([Record("c")], partition=1)
    assert [r.value for r in topic.read({0: 2, 1: 1})] == ["a2", "b0", "b1", "b2"]
    assert [r.value for r in topic.read({0: 6})] == ["c"]
    assert topic.offsets_at(between) == {0: 3, 1: 0, 2: 0}
    assert topic.offsets_at(datetime.fromtimestamp(between / 1000, UTC)) == {0: 3, 1: 0, 2: 0}
    assert topic.offsets_at(between + 10**9) == {0: 6, 1: 1, 2: 0}
    assert [r.value for r in topic.read(from_time=between)] == ["b0", "b1", "b2", "c"]
    assert [r.value for r in topic.read({0: 5}, from_time=between)] == ["b2", "c"]


def test_should_read_to_the_end_as_it_was_when_called(topic: TopicFiles) -> None:
    topic.append([Record("1")], partition=0)
    reading = topic.read()
    topic.append([Record("2")], partition=0)
    assert [r.value for r in reading] == ["1"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Record("a\nb"), "one line"),
        (Record(None), "must have a key"),
        (Record("", key="k"), "means deletion"),
    ],
)
def test_should_refuse_records_that_the_format_cannot_hold(
    topic: TopicFiles, record: Record, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        topic.append([Record("good"), record])
    assert list(topic.read()) == []
    assert list((topic.path / "_staging").iterdir()) == []


def test_should_refuse_partitions_and_offsets_that_are_not_there(topic: TopicFiles) -> None:
    for call in (
        lambda: topic.append([Record("x")], partition=3),
        lambda: topic.read({-1: 0}),
        lambda: topic.segments(3),
    ):
        with pytest.raises(UsageError, match="0 to 2"):
            call()
    topic.append([Record("x")], partition=0)
    topic.append([Record("y")], partition=0)
    first = topic.segments(0)[0]
    (topic.path / "partition-00000" / first.name).unlink()
    assert topic.start_offsets()[0] == 1
    with pytest.raises(NotFoundError, match="no longer"):
        topic.read({0: 0})


def test_should_name_the_partition_that_has_a_hole(topic: TopicFiles) -> None:
    for text in "abc":
        topic.append([Record(text)], partition=1)
    (topic.path / "partition-00001" / topic.segments(1)[1].name).unlink()
    with pytest.raises(HeadgateError, match=r"partition 1 .* offset 1"):
        topic.end_offsets()


def test_should_ignore_files_that_are_no_segments(topic: TopicFiles) -> None:
    folder = topic.path / "partition-00000"
    for name in ("_x-1-1.jsonl", "notes.txt", "1-2.jsonl", "a-b-c.jsonl", ".1-1-1.jsonl"):
        (folder / name).write_text("?\n")
    assert topic.segments(0) == []
    assert Segment.parse("00000000000000000007-2-99.keyed.jsonl") == Segment(7, 2, 99, True)
    assert Segment(7, 2, 99, True).name == "00000000000000000007-2-99.keyed.jsonl"


def test_should_never_let_times_go_back(topic: TopicFiles) -> None:
    topic.append([Record("x")], partition=0)
    [segment] = topic.segments(0)
    later = Segment(0, 1, segment.millis + 10**6)
    folder = topic.path / "partition-00000"
    (folder / segment.name).rename(folder / later.name)
    topic.append([Record("y")], partition=0)
    assert topic.segments(0)[1].millis == later.millis


def test_should_finish_what_a_crashed_writer_committed(topic: TopicFiles) -> None:
    staged = topic.path / "_staging" / "w-0.part"
    staged.write_text("first\nsecond\n")
    orphan = topic.path / "_staging" / "w-1.part"
    orphan.write_text("never committed\n")
    (topic.path / "_writers").mkdir()
    moves = [{"staged": "_staging/w-0.part", "final": f"partition-00001/{Segment(0, 2, 5).name}"}]
    (topic.path / "_writers" / "job.r1.out.json").write_text(
        json.dumps({"batch": 3, "segments": moves})
    )
    topic.append([Record("third")], partition=1)
    assert _shape(list(topic.read())) == [
        (1, 0, None, "first"), (1, 1, None, "second"), (1, 2, None, "third"),
    ]  # fmt: skip
    assert not staged.exists()
    assert orphan.exists()


def _append_many(path: Path, name: str, times: int) -> None:
    files = TopicFiles(path)
    for n in range(times):
        files.append([Record(f"{name}-{n}-{i}") for i in range(3)], partition=n % 2)


def test_should_keep_offsets_contiguous_when_processes_and_threads_append_at_once(
    topic: TopicFiles,
) -> None:
    context = multiprocessing.get_context("spawn")
    workers: list[multiprocessing.process.BaseProcess | threading.Thread] = [
        context.Process(target=_append_many, args=(topic.path, f"p{n}", 40)) for n in range(2)
    ]
    workers += [
        threading.Thread(target=_append_many, args=(topic.path, f"t{n}", 40)) for n in range(3)
    ]
    for worker in workers:
        worker.start()
    while any(w.is_alive() for w in workers):
        topic.end_offsets()  # a listing never shows a hole
    for worker in workers:
        worker.join()
    assert_contiguous(topic.path)
    got = [r.value for r in topic.read()]
    assert len(got) == 5 * 40 * 3
    assert len(set(got)) == len(got)
    for worker_name in ("p0", "t2"):
        for partition in (0, 1):
            own = [
                r.value for r in topic.read() if r.partition == partition
                and r.value is not None and r.value.startswith(worker_name)
            ]  # fmt: skip
            expected = [f"{worker_name}-{n}-{i}" for n in range(partition, 40, 2) for i in range(3)]
            assert own == expected, "each writer's own order is kept"
