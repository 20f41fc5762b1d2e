"""The lease: one driver a job, with real processes, kill -9 and clocks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.base.errors import ExitCode, RefusedError
from headgate.base.identity import process_started
from headgate.home.layout import Home, JobHome
from headgate.home.model import JobRecord, LeaseRecord
from headgate.home.times import now
from headgate.runtime.lease import Clock, Lease, is_gone, is_live, this_process

HOLDER = """
import sys, time
from headgate.runtime.lease import Lease
from headgate.home.layout import Home
with Lease(Home(sys.argv[1]).job("store")):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def job(tmp_path: Path) -> JobHome:
    return Home(tmp_path).job("store")


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def elsewhere(lease: LeaseRecord, *, age: float) -> LeaseRecord:
    """The same lease as if a process on another machine had it."""
    owner = replace(lease.owner, host="far.example", space="another boot")
    return replace(lease, owner=owner, heartbeat=now() - timedelta(seconds=age))


def test_a_second_copy_is_refused_and_told_who_runs(
    job: JobHome, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(RefusedError) as refused:
        Lease(job).acquire()
    text = str(refused.value)
    assert refused.value.exit_code == ExitCode.REFUSED
    assert f"job 'store' is driven by process {holder.pid} on " in text
    assert "last heard of" in text
    assert f"kill {holder.pid}" in text


def test_a_killed_owner_is_replaced_at_once(job: JobHome, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with Lease(job) as lease:  # it is not refused, although the old one has not run out
        assert lease.held


def test_an_owner_that_ends_gives_the_lease_back(job: JobHome) -> None:
    with Lease(job):
        assert is_live(job.read().lease)
    assert job.read().lease is None
    with Lease(job) as again:
        assert again.held


def test_a_reused_pid_is_not_the_owner(job: JobHome) -> None:
    me = this_process()
    assert not is_gone(me)
    assert is_gone(replace(me, started="1"))


def test_a_process_that_is_not_there_has_no_start_time() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert process_started(process.pid) is None
    assert process_started(os.getpid()) == process_started(os.getpid())


def test_a_far_owner_that_is_silent_is_waited_for_until_its_time_is_up(job: JobHome) -> None:
    stamp, said = now(), list[str]()
    lease = LeaseRecord(this_process(), stamp, stamp, 3.0)
    job.change(lambda old: JobRecord("store", "r1", elsewhere(lease, age=2)))
    began = time.monotonic()
    with Lease(job, say=said.append):
        assert time.monotonic() - began >= 0.9
        assert job.read().current_run == "r1", "the current run stays"
    assert "whether process" in said[0] and "last heard of 2.0s ago" in said[0], said
    job.change(lambda old: JobRecord("store", "r1", elsewhere(lease, age=4)))
    with Lease(job, say=said.append) as taken:
        assert taken.held and len(said) == 1, "one whose time is up is not waited for"


def test_a_lease_is_renewed_and_the_current_run_stays(job: JobHome) -> None:
    with Lease(job, renew_seconds=0.05):
        job.set_current("r7")
        first = job.read().lease
        assert first is not None
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            lease = job.read().lease
            assert lease is not None
            if lease.heartbeat > first.heartbeat:
                break
            time.sleep(0.02)
        assert lease.heartbeat > first.heartbeat
        assert job.read().current_run == "r7"


def test_a_lease_that_was_taken_is_noticed(job: JobHome) -> None:
    told: list[str] = []
    lease = Lease(job, renew_seconds=0.05, on_lost=told.append).acquire()
    stamp = now()
    thief = replace(this_process(), pid=4242, host="far.example")
    job.change(lambda old: JobRecord("store", None, LeaseRecord(thief, stamp, stamp, 30.0)))
    deadline = time.monotonic() + 5
    while lease.lost is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert told == ["process 4242 on far.example has taken over its lease"]
    assert not lease.held
    lease.release()
    record = job.read().lease
    assert record is not None
    assert record.owner.pid == 4242, "a lease that is not ours is not given back"


def test_of_many_starts_at_once_one_wins(tmp_path: Path) -> None:
    code = """
import sys, time
from headgate.base.errors import RefusedError
from headgate.runtime.lease import Lease
from headgate.home.layout import Home
time.sleep(max(0, float(sys.argv[2]) - time.time()))
try:
    lease = Lease(Home(sys.argv[1]).job("store")).acquire()
    print("held", flush=True)
    time.sleep(2)
except RefusedError:
    print("refused", flush=True)
"""
    at = str(time.time() + 1.5)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), at], stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    words = [process.communicate()[0].strip() for process in processes]
    assert sorted(words) == ["held", *["refused"] * 5]


def test_without_locks_the_later_writer_wins() -> None:
    job = Home("memory://lease_home").job("store")
    second = Lease(job, settle_seconds=0.0)

    def overtaken(_seconds: float) -> None:
        stamp = now()
        job.change(
            lambda old: JobRecord("store", None, LeaseRecord(second.owner, stamp, stamp, 30.0))
        )

    first = Lease(job, settle_seconds=0.0, clock=Clock(sleep=overtaken))
    with pytest.raises(RefusedError, match="a moment faster"):
        first.acquire()
