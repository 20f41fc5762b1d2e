"""The lease: at most one process drives a job; a dead owner's lease is taken over."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from headgate.base.durations import format_duration
from headgate.base.errors import HeadgateError, RefusedError, StorageError
from headgate.base.identity import pid_space, process_started
from headgate.home.layout import JobHome
from headgate.home.model import JobRecord, LeaseRecord, Owner
from headgate.home.status_note import beat_of
from headgate.home.times import now

TTL_SECONDS = 30.0
RENEW_SECONDS = 5.0

# Without locks and conditions two takers may both believe to be first: the later write wins, so
# each waits this long (more than a slow write takes) and reads back whose it is.
_SETTLE_SECONDS = 1.0
_OBSERVE_SECONDS = 1.0


# Leases of this process that are over, also where a full disk kept that from being written.
_given_back: set[str] = set()


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
    if owner.token in _given_back:
        return True
    return owner.space == pid_space() and process_started(owner.pid) != owner.started


@dataclass(frozen=True)
class Clock:
    """What a lease takes the time from; tests bring their own."""

    now: Callable[[], datetime] = now
    """The time of day, which others read and which may be stepped."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds that only go forward."""
    sleep: Callable[[float], None] = time.sleep


_CLOCK = Clock()
# Heartbeats from the future, by their lease's token: which one, and when this process met it first.
_met: dict[str, tuple[datetime, float]] = {}


def is_live(lease: LeaseRecord | None, *, clock: Clock = _CLOCK) -> bool:
    """Whether a lease still holds: its owner is not known to be dead, and said so in time."""
    if lease is None or is_gone(lease.owner):
        return False
    heartbeat = _newest_beat(lease)
    age = (clock.now() - heartbeat).total_seconds()
    if age >= 0:
        return age <= lease.ttl_seconds
    # A clock is wrong, theirs or ours. Such a heartbeat counts from when we first saw it.
    known, since = _met.get(lease.owner.token, (None, 0.0))
    if known != heartbeat:
        _met[lease.owner.token] = heartbeat, clock.monotonic()
        return True
    return clock.monotonic() - since <= lease.ttl_seconds


def _newest_beat(lease: LeaseRecord) -> datetime:
    """The heartbeat in the home, or a later one that a full disk kept from being written."""
    beside = beat_of(lease.owner.token) if lease.owner.space == pid_space() else None
    return lease.heartbeat if beside is None else max(lease.heartbeat, beside)


class Lease:
    """The right to drive a job, renewed in the background until it is released or lost.

    >>> from headgate.home.layout import Home
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
        on_beat: Callable[[StorageError | None], None] = lambda trouble: None,
        say: Callable[[str], None] = lambda text: None,
        clock: Clock = _CLOCK,
    ) -> None:
        """``on_beat`` is called in a thread of the lease, with why it could not be renewed."""
        self._job = job
        self._ttl = ttl_seconds
        self._renew = renew_seconds
        self._settle = settle_seconds
        self._on_lost = on_lost
        self.on_beat = on_beat
        self._say = say
        self._clock = clock
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
        silent = self._observe(self._job.read().lease)

        def taken(old: JobRecord) -> JobRecord | None:
            if self._is_ours(old):
                return None  # it was written, and the store's answer got lost
            is_new = old.lease is not None and (silent is None or old.lease != silent)
            if old.lease is not None and is_new and is_live(old.lease, clock=self._clock):
                raise _refusal(self._job, old.lease, self._clock.now())
            stamp = self._clock.now()
            self._last_beat = stamp, self._clock.monotonic()
            return JobRecord(
                old.name, old.current_run, LeaseRecord(self.owner, stamp, stamp, self._ttl)
            )

        self._job.change(taken)
        if self._job.files.local() is None and not self._job.files.conditional:
            self._clock.sleep(self._settle)
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
        _given_back.add(self.owner.token)
        with contextlib.suppress(HeadgateError):
            self._job.change(
                lambda old: (
                    JobRecord(old.name, old.current_run, None) if self._is_ours(old) else None
                )
            )

    def __enter__(self) -> Lease:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _observe(self, lease: LeaseRecord | None) -> LeaseRecord | None:
        """Watch a lease of which nobody here can tell whether it is held; give it back if it stands
        still.

        Its owner is on another machine, and may have died just now: then a cluster starts this
        process in its place. Or its heartbeat is in the future: by the time of day it would hold
        until our clock has caught up. So what counts is whether its owner renews it, by a clock of
        ours that nobody steps.
        """
        clock = self._clock
        if lease is None or is_gone(lease.owner):
            return None
        age = (clock.now() - lease.heartbeat).total_seconds()
        longest = min(lease.ttl_seconds, TTL_SECONDS)
        if age >= 0 and (lease.owner.space == pid_space() or age > lease.ttl_seconds):
            return None
        seconds = longest if age < 0 else max(min(lease.ttl_seconds - age, longest), 0.0)
        self._say(_watches(self._job, lease, age, seconds))
        until = clock.monotonic() + seconds
        while (left := until - clock.monotonic()) > 0:
            clock.sleep(min(_OBSERVE_SECONDS, left))
            now_there = self._job.read().lease
            if now_there is None or is_gone(now_there.owner):
                return None
            if now_there != lease:
                raise _refusal(self._job, now_there, clock.now())
        return lease

    def _keep(self) -> None:
        while not self._ended.wait(self._renew):
            try:
                if not self._renewed():
                    return
                trouble = None
            except StorageError as error:
                # Nobody takes the job over without writing to the same file, and the kernel looks
                # into it before each commit: until then the job is ours, however long it takes.
                trouble = error
            except HeadgateError:
                continue  # another process holds the lock: the next time will do
            self.on_beat(trouble)

    def _renewed(self) -> bool:
        """Renew the lease; False if it is not ours any more."""
        others: list[LeaseRecord | None] = []

        def renewed(old: JobRecord) -> JobRecord | None:
            if old.lease is None or not self._is_ours(old):
                others.append(old.lease)
                return None
            beat = self._beat()
            return replace(old, lease=replace(old.lease, heartbeat=beat, ttl_seconds=self._ttl))

        self._job.change(renewed)
        if others:
            self._lose(_taken(self._job, others[0]))
        return not others

    def verify(self) -> bool:
        """Look into the home whether the lease is still ours: this process may have been frozen."""
        with contextlib.suppress(StorageError):  # nobody can have written what cannot be read
            record = self._job.read()
            if self.lost is None and not self._is_ours(record):
                self._lose(_taken(self._job, record.lease))
        return self.lost is None

    def _is_ours(self, record: JobRecord) -> bool:
        return record.lease is not None and record.lease.owner.token == self.owner.token

    def _beat(self) -> datetime:
        """Now, but never less than the last heartbeat and the seconds since: clocks are stepped."""
        heartbeat, at = self._last_beat
        at_least = heartbeat + timedelta(seconds=self._clock.monotonic() - at)
        beat = max(self._clock.now(), at_least)
        self._last_beat = beat, self._clock.monotonic()
        return beat

    def _lose(self, why: str) -> None:
        self.lost = why
        if self._on_lost is not None:
            self._on_lost(why)


def _taken(job: JobHome, lease: LeaseRecord | None) -> str:
    if lease is None:
        return f"the lease in {job.home.url} was removed by someone else"
    return f"process {lease.owner.pid} on {lease.owner.host} has taken over its lease"


def _watches(job: JobHome, lease: LeaseRecord, age: float, seconds: float) -> str:
    who = f"process {lease.owner.pid} on {lease.owner.host} still drives job '{job.name}'"
    sign = f"{format_duration(timedelta(seconds=abs(age)))}"
    last = f"it was last heard of {sign} ago"
    if age < 0:
        last = (
            f"its last sign of life is {sign} in the future, so the clock of that machine or of "
            "this one is wrong"
        )
    return (
        f"waiting up to {format_duration(timedelta(seconds=seconds))} to see whether {who}: {last}"
    )


def _refusal(job: JobHome, lease: LeaseRecord, at: datetime) -> RefusedError:
    owner = lease.owner
    age = max(at - lease.heartbeat, timedelta(0))
    if owner.space == pid_space():
        remedy = f"stop that one first (kill {owner.pid}), or start this one under another --name"
    else:
        remedy = "stop that one first (headgate stop), or start this one under another --name"
    return RefusedError(
        f"job '{job.name}' is driven by process {owner.pid} on {owner.host}, which was last "
        f"heard of {format_duration(age)} ago",
        remedy=remedy,
    )
