"""The lease: at most one process drives a job; a dead owner's lease is taken over."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta

from headgate.durations import format_duration
from headgate.errors import HeadgateError, RefusedError
from headgate.process_identity import pid_space, process_started
from headgate.snapshots.home import JobHome
from headgate.snapshots.model import JobRecord, LeaseRecord, Owner
from headgate.snapshots.times import now

TTL_SECONDS = 30.0
RENEW_SECONDS = 5.0

# Without locks two takers may both believe to be first: the later write wins, so each waits this
# long (more than a slow write takes) and reads back whose it is.
_SETTLE_SECONDS = 1.0


def this_process() -> Owner:
    """Who we are, with a token that no other start of this process has."""
    pid = os.getpid()
    return Owner(
        host=socket.gethostname(),
        pid=pid,
        started=process_started(pid) or "",
        space=pid_space(),
        token=uuid.uuid4().hex,
    )


def is_gone(owner: Owner) -> bool:
    """Whether the owner is known to be dead: only what runs beside us can be known so."""
    return owner.space == pid_space() and process_started(owner.pid) != owner.started


def is_live(lease: LeaseRecord | None) -> bool:
    """Whether a lease still holds: its owner is not known to be dead, and said so in time."""
    if lease is None or is_gone(lease.owner):
        return False
    return (now() - lease.heartbeat).total_seconds() <= lease.ttl_seconds


class Lease:
    """The right to drive a job, renewed in the background until it is released or lost.

    >>> from headgate.snapshots.home import Home
    >>> with Lease(Home("memory://lease_doc").job("store"), settle_seconds=0) as lease:
    ...     lease.held
    True
    """

    def __init__(
        self,
        job: JobHome,
        *,
        ttl_seconds: float = TTL_SECONDS,
        renew_seconds: float = RENEW_SECONDS,
        settle_seconds: float = _SETTLE_SECONDS,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        self._job = job
        self._ttl = ttl_seconds
        self._renew = renew_seconds
        self._settle = settle_seconds
        self._on_lost = on_lost
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.owner = this_process()
        self.lost: str | None = None

    @property
    def held(self) -> bool:
        """Whether the job is still ours to drive."""
        return self._thread is not None and self.lost is None

    def acquire(self) -> Lease:
        """Take the lease and keep it; refused if another live process has it."""
        with self._job.changing() as write:
            old = self._job.read()
            if old.lease is not None and is_live(old.lease):
                raise _refusal(self._job, old.lease)
            stamp = now()
            write(
                JobRecord(
                    old.name, old.current_run, LeaseRecord(self.owner, stamp, stamp, self._ttl)
                )
            )
        if self._job.files.local() is None:
            time.sleep(self._settle)
            winner = self._job.read().lease
            if winner is None or winner.owner.token != self.owner.token:
                raise RefusedError(
                    f"another start of job '{self._job.name}' was a moment faster",
                    remedy="let that one run, or stop it first",
                )
        self._thread = threading.Thread(target=self._keep, name="headgate-lease", daemon=True)
        self._thread.start()
        return self

    def release(self) -> None:
        """Give the lease back; nothing happens if it is not ours any more."""
        self._ended.set()
        thread, self._thread = self._thread, None
        if thread is None:
            return
        thread.join(timeout=self._ttl)
        with contextlib.suppress(HeadgateError), self._job.changing() as write:
            old = self._job.read()
            if old.lease is not None and old.lease.owner.token == self.owner.token:
                write(JobRecord(old.name, old.current_run, None))

    def __enter__(self) -> Lease:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _keep(self) -> None:
        renewed = time.monotonic()
        while not self._ended.wait(self._renew):
            try:
                with self._job.changing() as write:
                    old = self._job.read()
                    lease = old.lease
                    if lease is None or lease.owner.token != self.owner.token:
                        self._lose(_taken(self._job, lease))
                        return
                    fresh = LeaseRecord(lease.owner, lease.acquired_at, now(), self._ttl)
                    write(JobRecord(old.name, old.current_run, fresh))
                renewed = time.monotonic()
            except HeadgateError as error:
                # One failed write is not the end; others may take the job once the time is up.
                if time.monotonic() - renewed > self._ttl:
                    self._lose(f"its lease could not be renewed for {self._ttl:.0f} s ({error})")
                    return

    def _lose(self, why: str) -> None:
        self.lost = why
        if self._on_lost is not None:
            self._on_lost(why)


def _taken(job: JobHome, lease: LeaseRecord | None) -> str:
    if lease is None:
        return f"the lease in {job.home.url} was removed by someone else"
    return f"process {lease.owner.pid} on {lease.owner.host} has taken over its lease"


def _refusal(job: JobHome, lease: LeaseRecord) -> RefusedError:
    owner = lease.owner
    age = max(now() - lease.heartbeat, timedelta(0))
    if owner.space == pid_space():
        remedy = f"stop that one first (kill {owner.pid}), or start this one under another --name"
    else:
        remedy = (
            f"stop that one first, or start this one under another --name; if {owner.host} is "
            f"gone, try again in {format_duration(timedelta(seconds=lease.ttl_seconds))}"
        )
    return RefusedError(
        f"job '{job.name}' is driven by process {owner.pid} on {owner.host}, which was last "
        f"heard of {format_duration(age)} ago",
        remedy=remedy,
    )
