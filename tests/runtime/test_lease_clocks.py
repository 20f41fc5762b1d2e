"""The lease when clocks are wrong or stepped: what counts is whether its owner renews it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.base.errors import RefusedError
from headgate.home.layout import Home, JobHome
from headgate.home.model import JobRecord, LeaseRecord
from headgate.runtime.lease import Clock, Lease, is_live, this_process

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Time:
    """A clock whose seconds pass when somebody sleeps, and whose time of day can be stepped."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.stepped = timedelta(0)
        self.on_sleep = lambda: None

    def clock(self) -> Clock:
        return Clock(now=self.now, monotonic=lambda: self.seconds, sleep=self._sleep)

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds) + self.stepped

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.on_sleep()


@pytest.fixture
def job(tmp_path: Path) -> JobHome:
    return Home(tmp_path).job("store")


def far(heartbeat: datetime) -> LeaseRecord:
    owner = replace(this_process(), host="far.example", space="another boot", pid=77)
    return LeaseRecord(owner, heartbeat, heartbeat, 30.0)


def put(job: JobHome, lease: LeaseRecord) -> None:
    job.change(lambda old: JobRecord("store", "r1", lease))


def test_a_dead_owner_whose_clock_was_ahead_holds_the_job_for_its_ttl_only(job: JobHome) -> None:
    time, said = Time(), list[str]()
    put(job, far(NOON + HOUR))
    with Lease(job, clock=time.clock(), say=said.append) as lease:
        assert lease.held
        record = job.read()
        assert record.current_run == "r1"
        assert record.lease is not None and record.lease.owner == lease.owner
    assert 30 <= time.seconds <= 31
    assert len(said) == 1
    assert "process 77 on far.example" in said[0] and "1h 00m in the future" in said[0], said


@pytest.mark.parametrize("ahead", [HOUR, timedelta(0), timedelta(seconds=-20)])
def test_a_live_owner_elsewhere_keeps_the_job_whatever_its_clock_says(
    job: JobHome, ahead: timedelta
) -> None:
    time = Time()
    lease = far(NOON + ahead)
    put(job, lease)
    later = replace(lease, heartbeat=NOON + ahead + timedelta(seconds=5))
    time.on_sleep = lambda: put(job, later) if time.seconds >= 5 else None
    with pytest.raises(RefusedError, match=r"process 77 on far\.example"):
        Lease(job, clock=time.clock()).acquire()
    assert time.seconds <= 6, "it is refused as soon as a sign of life is seen"
    assert job.read().lease == later


def test_one_that_looks_again_and_again_sees_that_the_owner_is_dead(job: JobHome) -> None:
    time = Time()
    lease = far(NOON + HOUR)
    assert is_live(lease, clock=time.clock())
    time.seconds = 29
    assert is_live(lease, clock=time.clock())
    time.seconds = 31
    assert not is_live(lease, clock=time.clock())
    renewed = replace(lease, heartbeat=lease.heartbeat + timedelta(seconds=5))
    assert is_live(renewed, clock=time.clock())


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_clock_that_is_stepped_while_the_job_runs_loses_nothing(
    job: JobHome, step: timedelta
) -> None:
    time = Time()
    lease = Lease(job, clock=time.clock(), renew_seconds=3600).acquire()
    beats = [job.read().lease]
    for seconds in (5, 10, 15):
        time.seconds = seconds
        if seconds == 10:
            time.stepped = step
        assert lease._renewed() and lease.held
        beats.append(job.read().lease)
    # others, whose clocks nobody has stepped, never see it grow old
    heartbeats = [record.heartbeat for record in beats if record is not None]
    for seconds, beat in zip((0, 5, 10, 15), heartbeats, strict=True):
        assert beat >= NOON + timedelta(seconds=seconds)
    assert heartbeats == sorted(heartbeats)
    other = Time()
    other.seconds = time.seconds
    assert is_live(beats[-1], clock=other.clock())
    lease.release()
