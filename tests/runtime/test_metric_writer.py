"""The thread that keeps metrics: killed drivers, full disks, and leases that are lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headgate.base.errors import StorageError
from headgate.home.files import LocalFiles
from headgate.home.layout import RunHome
from headgate.home.model import CheckpointRecord
from headgate.home.offsets import SourceOffsets
from headgate.home.points import Point, total
from headgate.home.read.over_time import read_series
from headgate.home.read.series import TimeRange
from headgate.home.times import now
from headgate.runtime.metric_writer import MetricWriter
from tests.ui.homes import until
from tests.ui.small_home import JOB, small_home


@pytest.fixture
def run(tmp_path: Path) -> RunHome:
    """A run without checkpoints."""
    found = small_home(tmp_path, checkpoints=0).job(JOB).current()
    assert found is not None
    return found


def batch(run: RunHome, id: int) -> CheckpointRecord:
    """A batch of ten records that has just ended, written down as the driver does."""
    rows = {"orders": {"records_out": 10}, "out": {"records_in": 10, "records_out": 10}}
    found = CheckpointRecord(
        id=id, run=run.id, status="COMPLETED", type="periodic", triggered_at=now(),
        completed_at=now(), duration_ms=5, rows=rows, totals=rows,
        sources={"orders": SourceOffsets({"0": 10 * id}, {"0": 10 * id + 10})},
    )  # fmt: skip
    run.write_checkpoint(found)
    return found


def kept(run: RunHome) -> Point:
    return total(read_series(run.job, TimeRange(), most=10_000).points.values())


def test_a_killed_drivers_last_batches_come_from_its_records(run: RunHome) -> None:
    alive = True
    writer = MetricWriter(run.job, ours=lambda: alive, every=0.01)
    writer.begin(run)
    writer.event("started", now())
    for id in range(4):
        writer.checkpoint(batch(run, id))
    until(lambda: run.files.list(f"{run.job.path}/metrics") and kept(run).batches == 4, str)
    alive = False  # from here on it does nothing
    batch(run, 4)
    batch(run, 5)

    following = MetricWriter(run.job, ours=lambda: True)
    following.begin(run)
    following.event("started", now())
    following.checkpoint(batch(run, 6))
    following.checkpoint(batch(run, 7))
    following.event("finished", now())
    following.close()
    writer.close()
    found = kept(run)
    assert (found.batches, found.records_in, found.records_out) == (8, 80, 80)
    assert found.marks == {"started": 2, "crashed": 1, "finished": 1}


def test_a_home_of_an_older_headgate_shows_its_records_and_then_goes_on(run: RunHome) -> None:
    run.write_checkpoint(replace(batch(run, 0), type="forked"))
    for id in range(1, 4):
        batch(run, id)
    assert kept(run).batches == 3
    writer = MetricWriter(run.job, ours=lambda: True)
    writer.begin(run)
    writer.checkpoint(batch(run, 4))
    writer.close()
    assert run.files.list(f"{run.job.path}/metrics")
    assert kept(run).batches == 4


def test_a_full_disk_delays_metrics_and_a_lost_lease_ends_them(
    run: RunHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, ours, write, tries = True, True, LocalFiles.write_text, 0

    def written(files: LocalFiles, path: str, text: str) -> None:
        nonlocal tries
        if "/metrics/" in path:
            tries += 1
            if full:
                raise StorageError("there is no room")
        write(files, path, text)

    monkeypatch.setattr(LocalFiles, "write_text", written)
    writer = MetricWriter(run.job, ours=lambda: ours, every=0.01)
    writer.begin(run)
    writer.checkpoint(batch(run, 0))
    until(lambda: tries > 2, str)
    assert not run.files.list(f"{run.job.path}/metrics")
    full = False
    until(lambda: run.files.list(f"{run.job.path}/metrics"), str)
    ours = False
    seen = tries
    writer.checkpoint(batch(run, 1))
    writer.close()
    assert tries <= seen + 1  # one may have been under way
    assert kept(run).batches == 1
