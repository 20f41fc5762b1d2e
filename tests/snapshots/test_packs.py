"""Records that are packed: found by number, whole after a kill at any point, and not for ever."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import HeadgateError, StorageError
from headgate.home.checkpoint_log import KEEP, SPAN
from headgate.home.event_log import KEEP as KEEP_EVENTS
from headgate.home.event_log import SPAN as SPAN_EVENTS
from headgate.home.files import LocalFiles, write_json
from headgate.home.layout import Home, RunHome
from headgate.home.model import CheckpointRecord
from headgate.home.packs import PackedFolder
from headgate.home.tally import Tally

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MANY = 10**9


@pytest.fixture(autouse=True)
def without_syncing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of small files; what a power cut leaves is tried elsewhere."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


DYING = """
import os, signal, sys
from headgate.home.files import LocalFiles
from headgate.home.layout import Home

left, delete = int(sys.argv[2]), LocalFiles.delete

def dying(self, path):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    delete(self, path)

LocalFiles.delete = dying
Home(sys.argv[1]).job("store").run("r1").checkpoint_log.tidy(10**9)
"""


class Killed(BaseException):
    """The process is gone."""


class CountedFiles:
    """A store that counts reads and changes, and dies before a given change."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self.dies_at: int | None = None
        self.changes: list[str] = []
        self.reads: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def read_text(self, path: str) -> str | None:
        self.reads.append(path)
        found: str | None = self._files.read_text(path)
        return found

    def write_text(self, path: str, text: str) -> None:
        self._change(path)
        self._files.write_text(path, text)

    def delete(self, path: str) -> None:
        self._change(path)
        self._files.delete(path)

    def _change(self, path: str) -> None:
        if self.dies_at is not None and len(self.changes) == self.dies_at:
            raise Killed
        self.changes.append(path)


def new_run(folder: Path) -> RunHome:
    job = Home(folder).job("store")
    run = job.new_run(
        graph={"job": "store", "sources": [], "steps": [], "warnings": []},
        graph_fingerprint="f", parallelism=1, params={}, versions={}, code={},
    )  # fmt: skip
    job.set_current(run.id)
    return run


def record(id: int) -> CheckpointRecord:
    done = NOON + timedelta(seconds=10 * id)
    return CheckpointRecord(
        id=id, run="r1", status="COMPLETED", type="periodic", triggered_at=done,
        completed_at=done, duration_ms=100, rows={"orders": {"records_out": id}},
    )  # fmt: skip


def counted(run: RunHome) -> tuple[RunHome, CountedFiles]:
    """The same run through files that count and die."""
    home = Home(run.job.home.url)
    files = CountedFiles(home.files)
    home.files = files  # type: ignore[assignment]
    return home.job(run.job.name).run(run.id), files


def fill(run: RunHome, ids: range) -> None:
    for id in ids:
        run.write_checkpoint(record(id))


def assert_whole(run: RunHome, ids: range) -> None:
    """Every record is there once, in every way to ask."""
    assert run.checkpoint_ids() == list(ids)
    assert [r.id for r in run.checkpoints()] == list(ids)
    assert all(run.record_at(id) == record(id) for id in (ids[0], ids[len(ids) // 2], ids[-1]))
    assert run.checkpoint_log.bounds() == (ids[0], ids[-1])
    assert run.latest_checkpoint() == record(ids[-1])


def test_old_records_are_packed_and_still_found(tmp_path: Path) -> None:
    run, ids = new_run(tmp_path), range(17, 2 * SPAN + KEEP)
    fill(run, ids)
    assert run.checkpoint_log.tidy(MANY) and run.checkpoint_log.tidy(MANY)
    assert not run.checkpoint_log.tidy(MANY), "the newest stay files"
    packs = run.files.list(f"{run.path}/packed/checkpoints")
    assert packs == ["0000000000.json", f"{SPAN:010d}.json"]
    loose = run.files.list(f"{run.path}/checkpoints")
    assert loose == [f"{id:010d}.json" for id in ids if id >= 2 * SPAN]
    assert_whole(run, ids)
    page = run.checkpoint_log.last(3, before=SPAN + 1)
    assert [r.id for r in page] == [SPAN - 2, SPAN - 1, SPAN]
    with pytest.raises(HeadgateError, match=rf"ck:3: it has ck:17 to ck:{ids[-1]}"):
        run.checkpoint(3)


def test_records_are_packed_in_a_store_without_folders_and_locks() -> None:
    job = Home("memory://packs").job("store")
    run, ids = job.run("r1"), range(SPAN + KEEP)
    fill(run, ids)
    assert run.checkpoint_log.tidy(MANY) and not run.checkpoint_log.tidy(MANY)
    assert len(run.files.list(f"{run.path}/checkpoints")) == KEEP
    assert_whole(run, ids)


def test_a_range_is_packed_only_when_enough_newer_ones_are_there(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    fill(run, range(SPAN + KEEP - 1))
    assert not run.checkpoint_log.tidy(MANY)
    fill(run, range(SPAN + KEEP - 1, SPAN + KEEP))
    assert run.checkpoint_log.tidy(MANY)


@pytest.mark.parametrize("point", range(7))
def test_a_kill_at_any_point_of_packing_loses_nothing_and_doubles_nothing(
    tmp_path: Path, point: int
) -> None:
    """Five records in a pack: its write, then five deletions, with a kill before each of them."""
    files = CountedFiles(LocalFiles(tmp_path))
    name = re.compile(r"(\d{10})\.json")
    folder = PackedFolder(files, "loose", "packs", name, span=5, keep=3)  # type: ignore[arg-type]
    for id in range(8):
        write_json(files, f"loose/{id:010d}.json", {"id": id})  # type: ignore[arg-type]
    written = len(files.changes)
    files.dies_at = written + point
    with pytest.raises(Killed) if point < 6 else nullcontext():
        folder.pack_oldest()
    whole = [(id, {"id": id}) for id in reversed(range(8))]
    assert list(folder.newest_first()) == whole
    assert folder.packs() == ([0] if point else [])
    assert sorted(folder.loose()) == [*range(max(point - 1, 0), 5), 5, 6, 7]
    files.dies_at = None
    assert folder.pack_oldest() == (point < 6) and not folder.pack_oldest()
    assert list(folder.newest_first()) == whole and sorted(folder.loose()) == [5, 6, 7]
    assert files.changes.count("packs/0000000000.json") == 1, "it is whole, and not written again"


def test_a_packer_that_is_really_killed_leaves_every_record(tmp_path: Path) -> None:
    run, ids = new_run(tmp_path), range(SPAN + KEEP)
    fill(run, ids)
    for deletions in (0, 1, SPAN - 1):
        words = [sys.executable, "-c", DYING, str(tmp_path), str(deletions)]
        assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
        assert_whole(run, ids)
        fill(run, ids)
    assert run.checkpoint_log.tidy(MANY)
    assert_whole(run, ids)


def test_files_that_a_power_cut_brought_back_count_once(tmp_path: Path) -> None:
    run, ids = new_run(tmp_path), range(SPAN + KEEP)
    fill(run, ids)
    run.checkpoint_log.tidy(MANY)
    fill(run, range(40, 60))  # deletions are not synced
    assert_whole(run, ids)
    assert run.checkpoint_log.tidy(MANY) and not run.checkpoint_log.tidy(MANY)
    assert_whole(run, ids)
    assert len(run.files.list(f"{run.path}/checkpoints")) == KEEP


def test_a_record_that_is_packed_while_it_is_looked_for_is_found(tmp_path: Path) -> None:
    run, ids = new_run(tmp_path), range(SPAN + KEEP)
    fill(run, ids)
    records = run.checkpoint_log._newest_first(None)
    seen = [next(records).id for _ in range(KEEP + 10)]
    run.checkpoint_log.tidy(MANY)
    assert seen + [r.id for r in records] == list(reversed(ids))


def test_packs_beyond_the_bound_are_deleted(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    fill(run, range(4 * SPAN))
    while run.checkpoint_log.tidy(2 * SPAN):
        pass
    assert run.checkpoint_log.bounds() == (2 * SPAN, 4 * SPAN - 1)
    assert run.checkpoint_ids() == list(range(2 * SPAN, 4 * SPAN))


def test_a_damaged_file_stays_and_does_not_stop_the_packing(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    fill(run, range(2 * SPAN + KEEP))
    damaged = f"{run.path}/checkpoints/{5:010d}.json"
    run.files.write_text(damaged, "{")
    assert run.checkpoint_log.tidy(MANY) and run.checkpoint_log.tidy(MANY)
    assert run.files.list(f"{run.path}/checkpoints")[0] == f"{5:010d}.json"
    assert run.record_at(4) == record(4)
    with pytest.raises(HeadgateError, match="not valid JSON"):
        run.record_at(5)


def test_a_full_disk_leaves_the_files_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, ids = new_run(tmp_path), range(SPAN + KEEP)
    fill(run, ids)

    def full(path: str, text: str) -> None:
        raise StorageError(f"cannot write {path}: no space left", remedy="make room")

    with monkeypatch.context() as patch:
        patch.setattr(run.files, "write_text", full)
        assert not run.checkpoint_log.tidy(MANY)
    assert_whole(run, ids)
    assert run.checkpoint_log.tidy(MANY)


def test_a_deleted_checkpoint_is_gone_from_its_pack(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    fill(run, range(SPAN + KEEP))
    run.checkpoint_log.tidy(MANY)
    run.checkpoint_log.forget(7)
    run.checkpoint_log.forget(SPAN + 1)
    assert run.record_at(7) is None and run.record_at(SPAN + 1) is None
    left = [id for id in range(SPAN + KEEP) if id not in (7, SPAN + 1)]
    assert run.checkpoint_ids() == left


def test_the_checkpoint_at_a_time_is_found_by_halves(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    fill(run, range(2 * SPAN + KEEP))
    while run.checkpoint_log.tidy(MANY):
        pass
    run.checkpoint_log.forget(40)
    for id, found in ((0, 0), (39, 39), (40, 39), (41, 41), (SPAN, SPAN), (10**6, 599)):
        at = run.checkpoint_log.newest_by(NOON + timedelta(seconds=10 * id + 5))
        assert at is not None and at.id == found
    assert run.checkpoint_log.newest_by(NOON - timedelta(seconds=1)) is None


def test_a_newer_pack_is_refused(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    fill(run, range(SPAN + KEEP))
    run.checkpoint_log.tidy(MANY)
    path = f"{run.path}/packed/checkpoints/0000000000.json"
    data = json.loads(run.files.read_text(path) or "")
    run.files.write_text(path, json.dumps({**data, "version": 2}))
    with pytest.raises(HeadgateError, match="a pack of records was written by a newer Headgate"):
        run.record_at(3)


def test_a_tally_counts_without_reading(tmp_path: Path) -> None:
    tally = Tally().plus(90, {"commit": 10}).plus(None, {}).plus(400_000, {"commit": 300})
    assert tally.completed == 3 and tally.durations.count == 2
    assert tally.durations.seconds == 400.09
    assert tally.durations.cumulative()[0] == (0.1, 1)
    assert tally.durations.cumulative()[-2:] == [(300.0, 1), (float("inf"), 2)]
    assert tally.phases["commit"].cumulative()[2] == (0.5, 2)
    kept = replace(record(3), tally=tally)
    assert CheckpointRecord.from_json(json.loads(json.dumps(kept.to_json()))) == kept


def add_failures(run: RunHome, count: int) -> None:
    for number in range(count):
        run.add_event("failed", reason="STORAGE", step="out", batch=number, gives_up=None)
        run.add_event("restarting", reason="STORAGE", attempt=number + 1)
        run.add_event("restarted", attempt=number + 1)


def test_events_of_a_job_that_restarts_for_ever_are_packed(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.add_event("started", how="new", master="local[2]")
    add_failures(run, 200)
    assert len(run.files.list(f"{run.path}/events")) <= SPAN_EVENTS + KEEP_EVENTS
    kinds = [event.kind for event in run.events()]
    assert kinds == ["started", *["failed", "restarting", "restarted"] * 200]
    log = run.event_log()
    started, failed = log.last("started"), log.last("failed")
    assert started is not None and started.details["master"] == "local[2]"
    assert failed is not None and failed.details["batch"] == 199
    assert log.newest is not None and log.newest.kind == "restarted" and log.restarts == 200
    tally = log.tally
    assert (tally.count, tally.starts, tally.restored, tally.restarts) == (601, 1, 200, 200)
    assert tally.failed == {"out": 200} and tally.restarting == {"STORAGE": 200}
    assert tally.failed_batches == 200
    events = run.events()
    last = events[-1].at + timedelta(hours=1)
    spent = tally.spent(last)
    assert sum(spent.values()) == pytest.approx((last - events[0].at).total_seconds())
    assert spent["RUNNING"] > 3600.0 > spent["RESTARTING"] > 0.0


def test_the_tally_of_events_reads_few_files(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.add_event("started", how="new")
    add_failures(run, 300)
    looking, files = counted(run)
    log = looking.event_log()
    assert log.last("started") is not None and log.newest is not None and log.restarts == 300
    assert len(files.reads) == 2, "a pack's head and the newest event"
    assert log.tally.count == 901
    assert len(files.reads) <= SPAN_EVENTS + KEEP_EVENTS + 3


def test_a_kill_while_events_are_packed_counts_none_twice(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.add_event("started", how="new")
    add_failures(run, 33)  # one more event packs the first range
    dying, files = counted(run)
    files.dies_at = 2 + 20  # the event, the pack, and twenty deletions
    with pytest.raises(Killed):
        dying.add_event("stopped")
    assert len(run.files.list(f"{run.path}/packed/events")) == 1
    assert [event.kind for event in run.events()].count("failed") == 33
    assert run.event_log().tally.failed == {"out": 33} and run.event_log().restarts == 33
    for _ in range(2):
        run.add_event("started", how="resumed")
    assert len(run.events()) == 103 and run.event_log().tally.starts == 3
