"""Forks of hand-made Spark folders: what goes along, what stays, and the order of sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.errors import HeadgateError
from headgate.snapshots.fork import fork_latest, pending_batch
from headgate.snapshots.home import Home, RunHome
from headgate.snapshots.spark_log import parse_entry

META = {"batchWatermarkMs": 7, "batchTimestampMs": 9, "conf": {"spark.sql.shuffle.partitions": "2"}}
SOURCES = ["orders", "users", "items"]


def entry(*lines: str) -> str:
    return "\n".join(["v1", json.dumps(META, separators=(",", ":")), *lines])


def lines_of(batch: int) -> list[str]:
    return [f'{{"0":{batch}{i}}}' for i in range(3)]


def texts(run: RunHome) -> dict[str, str | None]:
    return {p: run.files.read_text(f"{run.spark_path}/{p}") for p in run.files.walk(run.spark_path)}


def make(
    home: str | Path, *, committed: int, planned: int | None = None
) -> tuple[RunHome, RunHome]:
    job = Home(home).job("store")
    old, new = job.run("r1"), job.run("r2")
    put = lambda path, text="x": old.files.write_text(f"{old.spark_path}/{path}", text)  # noqa: E731
    put("metadata", '{"id":"5f0c"}')
    for batch in range((committed if planned is None else planned) + 1):
        put(f"offsets/{batch}", entry(*lines_of(batch)))
    for batch in range(committed + 1):
        put(f"commits/{batch}", f'v2\n{{"nextBatchWatermarkMs":{batch}}}')
    store = "state/1742062411/0"
    for version in range(1, committed + 3):
        put(f"{store}/{version}_aaaa.changelog")
        put(f"{store}/{version}_aaaa.changelog.crc")
        put(f"{store}/.{version}_aaaa.changelog.crc")
    put(f"{store}/2_bbbb.zip")
    put(f"{store}/SSTs/000008-4f.sst")
    put(f"{store}/.3_aaaa.changelog.5d.TID5.tmp")
    put(f"{store}/_metadata/schema")
    put("state/1742062411/_metadata/metadata")
    for batch in range(committed + 2):
        put(f"state/1742062411/_metadata/v2/{batch}")
    for place, name in enumerate(SOURCES):
        put(f"sources/{place}/0", name)
    return old, new


def test_the_latest_committed_batch_goes_along_and_nothing_after_it(tmp_path: Path) -> None:
    old, new = make(tmp_path, committed=3, planned=4)
    assert fork_latest(old, new, SOURCES, SOURCES) == 3
    files = set(new.files.walk(new.spark_path))
    assert {f for f in files if f.startswith("offsets/")} == {"offsets/2", "offsets/3"}
    assert {f for f in files if f.startswith("commits/")} == {"commits/3"}
    store = "state/1742062411/0"
    assert f"{store}/4_aaaa.changelog" in files, "version N + 1 is the state after batch N"
    assert f"{store}/4_aaaa.changelog.crc" in files
    assert f"{store}/2_bbbb.zip" in files
    assert f"{store}/SSTs/000008-4f.sst" in files
    assert f"{store}/_metadata/schema" in files
    assert not {f for f in files if "/5_aaaa" in f or "/.5_aaaa" in f or f.endswith(".tmp")}
    metadata = {f for f in files if "/_metadata/v2/" in f}
    assert metadata == {f"state/1742062411/_metadata/v2/{batch}" for batch in range(4)}


def test_offset_lines_move_with_their_source(tmp_path: Path) -> None:
    old, new = make(tmp_path, committed=3)
    fork_latest(old, new, SOURCES, ["items", "clicks", "orders"])
    for batch in (2, 3):
        text = new.files.read_text(f"{new.spark_path}/offsets/{batch}")
        assert text is not None
        orders, _, items = lines_of(batch)
        assert text == entry(items, "-", orders), "users is gone, clicks is new"
    assert new.files.read_text(f"{new.spark_path}/sources/0/0") == "items"
    assert not new.files.exists(f"{new.spark_path}/sources/1")
    assert new.files.read_text(f"{new.spark_path}/sources/2/0") == "orders"


def test_a_source_that_is_read_twice_has_its_line_twice(tmp_path: Path) -> None:
    old, new = make(tmp_path, committed=0)
    fork_latest(old, new, SOURCES, ["orders", "users", "items", "users"])
    text = new.files.read_text(f"{new.spark_path}/offsets/0")
    assert text == entry(*lines_of(0), lines_of(0)[1])


def test_the_same_sources_leave_the_entry_as_it_is(tmp_path: Path) -> None:
    old, new = make(tmp_path, committed=1)
    fork_latest(old, new, SOURCES, SOURCES)
    for name in ("offsets/1", "commits/1", "metadata"):
        assert new.files.read_text(f"{new.spark_path}/{name}") == old.files.read_text(
            f"{old.spark_path}/{name}"
        )


def test_a_run_that_has_committed_nothing_gives_nothing(tmp_path: Path) -> None:
    old, new = make(tmp_path, committed=-1, planned=0)
    assert fork_latest(old, new, SOURCES, SOURCES) is None
    assert not new.files.exists(new.spark_path)


def test_the_first_batch_needs_no_batch_before_it(tmp_path: Path) -> None:
    old, new = make(tmp_path, committed=0)
    assert fork_latest(old, new, SOURCES, SOURCES) == 0
    assert new.files.list(f"{new.spark_path}/offsets") == ["0"]


def test_missing_offsets_are_refused(tmp_path: Path) -> None:
    old, new = make(tmp_path, committed=3)
    old.files.delete(f"{old.spark_path}/offsets/2")
    with pytest.raises(HeadgateError, match=r"no offsets of batch 2.*--fresh"):
        fork_latest(old, new, SOURCES, SOURCES)


def test_the_old_run_is_not_changed_by_writes_to_the_new(tmp_path: Path) -> None:
    old, new = make(tmp_path, committed=1)
    before = texts(old)
    fork_latest(old, new, SOURCES, SOURCES)
    for path in list(new.files.walk(new.spark_path)):
        new.files.write_text(f"{new.spark_path}/{path}", "changed")
    assert texts(old) == before


def test_a_fork_in_an_object_store_is_a_copy() -> None:
    old, new = make("memory://fork_home", committed=3, planned=4)
    assert fork_latest(old, new, SOURCES, ["users", "orders", "items"]) == 3
    orders, users, items = lines_of(3)
    assert new.files.read_text(f"{new.spark_path}/offsets/3") == entry(users, orders, items)
    assert new.files.exists(f"{new.spark_path}/state/1742062411/0/4_aaaa.changelog")


@pytest.mark.parametrize(
    ("committed", "planned", "expected"), [(3, 4, 4), (3, 3, None), (-1, 0, 0), (-1, -1, None)]
)
def test_the_pending_batch_is_planned_but_not_committed(
    tmp_path: Path, committed: int, planned: int, expected: int | None
) -> None:
    old, _ = make(tmp_path, committed=committed, planned=planned)
    assert pending_batch(old) == expected


def test_another_offset_log_version_is_refused() -> None:
    with pytest.raises(HeadgateError, match="not an offset log entry of version 1"):
        parse_entry("v2\n{}\n0:{}", "offsets/1")
