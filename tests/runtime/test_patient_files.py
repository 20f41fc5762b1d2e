"""Records that wait for a disk: kept in order, read back, written once, dropped with the lease."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from headgate.base.errors import StorageError
from headgate.home.files import Files, LocalFiles
from headgate.home.layout import Home, JobHome
from headgate.home.model import JobRecord, LeaseRecord
from headgate.home.operations import Operations
from headgate.home.status_note import clear_note, read_note, write_note
from headgate.home.times import now
from headgate.runtime.lease import Lease, is_live, this_process
from headgate.runtime.patience import Patience
from headgate.runtime.status import job_status

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Disk(LocalFiles):
    """A folder that takes nothing while it is full."""

    full = False

    def write_text(self, path: str, text: str) -> None:
        self._room(path)
        super().write_text(path, text)

    def delete(self, path: str) -> None:
        self._room(path)
        super().delete(path)

    def _room(self, path: str) -> None:
        if self.full:
            raise StorageError(f"cannot write {path}: No space left on device")


class Job:
    """A job with a driver, on a disk that can be full."""

    def __init__(self, folder: Path) -> None:
        home = Home(folder)
        self.disk = Disk(folder)
        home.files = cast(Files, self.disk)
        self.plain = JobHome(home, "store")
        self.lease = Lease(self.plain, renew_seconds=3600).acquire()
        self.said: list[str] = []
        self.patience = Patience(self.plain, self.lease, self.said.append)
        self.run = self.patience.home.new_run(
            graph={"steps": []}, graph_fingerprint="f", parallelism=1, params={}, versions={},
            code={},
        )  # fmt: skip
        self.patience.home.set_current(self.run.id)

    def poll(self) -> None:
        self.patience._next = 0.0
        self.patience.poll()


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    notes = tmp_path / "notes"
    notes.mkdir(mode=0o700)
    monkeypatch.setenv("HEADGATE_NOTES", str(notes))
    return Job(tmp_path / "home")


def kinds(job: Job, folder: Path) -> list[str]:
    names = os.listdir(folder / "home" / job.run.path / "events")
    return [name[11:-5] for name in sorted(names)]


def test_events_wait_in_order_and_are_seen_meanwhile(job: Job, tmp_path: Path) -> None:
    job.run.add_event("started")
    job.disk.full = True
    job.run.add_event("failed", reason="DISK_FULL", message="full", gives_up=None)
    job.run.add_event("restarting", attempt=1)
    assert kinds(job, tmp_path) == ["started"]
    assert [event.kind for event in job.run.events()] == ["started", "failed", "restarting"]
    job.poll()
    # whoever looks from another process sees them too, and that the driver lives
    other = Home(tmp_path / "home").job("store")
    status = job_status(other)
    assert status.state == "RESTARTING"
    assert [wait.kind for wait in status.waiting] == ["disk"]
    assert status.failure is not None and status.failure.details["message"] == "full"
    assert len(job.said) == 1 and job.said[0].startswith("waiting: the home does not take files")
    job.poll()
    assert len(job.said) == 1, "it is not said each time"
    job.disk.full = False
    job.poll()
    assert kinds(job, tmp_path) == ["started", "failed", "restarting"]
    assert job_status(other).waiting == () and read_note(other) is None
    assert len(job.said) == 2 and "takes files again" in job.said[1]


def test_a_journal_outlives_a_record_that_waits(job: Job) -> None:
    journal = f"{job.run.path}/journal/0000000001.json"
    job.patience.files.write_text(journal, "{}")
    job.disk.full = True
    job.patience.files.write_text(f"{job.run.path}/checkpoints/0000000002.json", "{}")
    job.patience.files.delete(journal)
    assert job.disk.exists(journal) and not job.patience.files.exists(journal)
    job.disk.full = False
    job.poll()
    assert not job.disk.exists(journal)
    assert job.disk.exists(f"{job.run.path}/checkpoints/0000000002.json")


def test_what_others_rely_on_does_not_wait(job: Job) -> None:
    job.disk.full = True
    with pytest.raises(StorageError):
        job.patience.home.set_current("r9")
    with pytest.raises(StorageError):
        job.patience.files.write_text("jobs/store/savepoints/a/manifest.json", "{}")
    assert not job.patience.pending


def test_an_operation_is_carried_out_and_its_end_is_written_later(job: Job) -> None:
    operations = Operations(job.patience.home)
    asked = operations.request("savepoint")
    job.disk.full = True
    taken = operations.take(asked.id)
    assert taken is not None and operations.take(asked.id) is None, "it is taken once"
    operations.end(asked.id, "failed", message="the disk is full")
    assert Operations(job.plain).read(asked.id).state == "requested"
    job.disk.full = False
    job.poll()
    assert Operations(job.plain).read(asked.id).message == "the disk is full"


def test_nothing_is_written_over_another_drivers_job(job: Job, tmp_path: Path) -> None:
    job.disk.full = True
    job.run.add_event("failed")
    job.run.add_event("restarting")
    job.disk.full = False
    stamp = now()
    job.plain.change(
        lambda old: JobRecord("store", "r1", LeaseRecord(this_process(), stamp, stamp, 30.0))
    )
    job.poll()
    assert not (tmp_path / "home" / job.run.path / "events").exists()
    assert not job.patience.pending


def test_a_lease_that_cannot_be_renewed_is_kept_while_nobody_takes_it(job: Job) -> None:
    job.disk.full = True
    with pytest.raises(StorageError):
        job.lease._renewed()
    assert job.lease.held
    job.patience.beat(StorageError("full"))
    record = job.plain.read().lease
    assert record is not None
    old = replace(record, heartbeat=now() - timedelta(hours=1))
    assert is_live(old), "its note says that the driver lives"
    clear_note(job.plain)
    assert not is_live(old)


def test_the_next_start_writes_what_a_dead_driver_could_not(job: Job, tmp_path: Path) -> None:
    job.run.add_event("started")
    with job.patience.kept():
        job.disk.full = True
        job.run.add_event("failed", reason="DISK_FULL", message="full", gives_up="no strategy")
    job.lease.release()
    other = Home(tmp_path / "home").job("store")
    assert job_status(other).state == "FAILED"
    assert kinds(job, tmp_path) == ["started"]
    job.disk.full = False
    with Lease(other) as lease, Patience(other, lease, job.said.append).kept():
        assert kinds(job, tmp_path) == ["started", "failed"]
        assert read_note(other) is None


def test_notes_that_others_could_have_written_are_not_read(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert write_note(job.plain, "mine", NOON, token="t")
    found = read_note(job.plain)
    assert found is not None and (found.text, found.since, found.alive) == ("mine", NOON, True)
    (tmp_path / "notes").chmod(0o777)
    assert read_note(job.plain) is None
    assert not write_note(job.plain, "again", NOON, token="t")
    (tmp_path / "notes").chmod(0o700)
    next((tmp_path / "notes").iterdir()).write_text("{ torn")
    assert read_note(job.plain) is None
