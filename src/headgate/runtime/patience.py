"""Patience of a driver with the disk of its home: it waits, says why, and goes on with room."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from headgate.base.disk import DiskTrouble, disk_trouble
from headgate.base.durations import format_duration
from headgate.base.errors import HeadgateError, StorageError
from headgate.failures import Failure, Reason
from headgate.home.files import Files
from headgate.home.layout import Home, JobHome
from headgate.home.status_note import clear_note, read_note, write_note
from headgate.home.times import now
from headgate.runtime.patient_files import PatientFiles, may_wait

if TYPE_CHECKING:
    from headgate.runtime.lease import Lease
    from headgate.runtime.options import RunOutcome

_LOOK_SECONDS = 1.0
_SAY_AGAIN_SECONDS = 60.0
_LAST_TRIES_SECONDS = 10.0
_THE_DISK = "the disk of the home"
_REMEDY = "make room, or remount it as writable; the job then continues by itself"


class Patience:
    """Owns what waits for the home's disk during one start, and what is said about it.

    1. ``home`` is the job's home with files that wait.
    2. ``poll`` writes what waits, looks at the disk and says what is new, in the driver's thread.
    3. ``beat`` keeps the note alive from the lease's thread, whatever the driver is at.
    4. ``settle`` gives what still waits at the end a last chance.
    """

    def __init__(self, job: JobHome, lease: Lease, say: Callable[[str], None]) -> None:
        self._plain = job
        self._token = lease.owner.token
        self._say = say
        self.files = PatientFiles(job.files, ours=self._ours)
        home = Home(job.home.url)
        home.files = cast(Files, self.files)
        self.home = JobHome(home, job.name)
        self._lock = threading.Lock()
        self._unrenewed: StorageError | None = None
        self._unwritable: StorageError | None = None
        self._since: datetime | None = None
        self._noted = False
        self._said = 0.0
        self._next = 0.0

    @property
    def pending(self) -> bool:
        """Whether something could not be written yet."""
        return bool(self.files.waiting)

    def poll(self) -> None:
        """Write what waits if there is room, and say what has changed."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LOOK_SECONDS
        self.files.flush()
        self._try_if_suspicious()
        text = self._trouble()
        if text is None:
            self._over()
            return
        self._since = self._since or now()
        if not self._said or time.monotonic() - self._said >= _SAY_AGAIN_SECONDS:
            again = f" (for {format_duration(now() - self._since)} now)" if self._said else ""
            self._said = time.monotonic()
            self._say(f"waiting: {text}{again}: {_REMEDY}")
        self._note(text)

    def beat(self, trouble: StorageError | None) -> None:
        """Take note that the lease was renewed, or why not."""
        self._unrenewed = trouble
        if trouble is not None:
            self._since = self._since or now()
            self._note(self._trouble() or "")

    def named(self, failure: Failure) -> Failure:
        """A failure of files with the disk that is to blame, if it can be seen."""
        if failure.reason not in (Reason.DISK_FULL, Reason.READ_ONLY, Reason.STORAGE):
            return failure
        found = self._disk()
        if found is None:
            return failure
        reason = Reason.DISK_FULL if found.full else Reason.READ_ONLY
        said = failure.sentence.removeprefix(f"{failure.reason.text}: ")
        return replace(failure, reason=reason, sentence=f"{found.sentence(_THE_DISK)}: {said}")

    def settle(
        self, outcome: RunOutcome, *, for_good: bool, stop: Callable[[], bool]
    ) -> RunOutcome:
        """The outcome of a job, when all that tells of it is written or will not be.

        A job whose restart strategy outlasts a full disk waits ``for_good``, until it is to stop;
        any other one for a moment.
        """
        if outcome.error is not None:
            return outcome
        until = time.monotonic() + _LAST_TRIES_SECONDS
        while self.pending and ((for_good and not stop()) or time.monotonic() < until):
            self.poll()
            time.sleep(0.1)
        if not self.pending:
            return outcome
        error = HeadgateError(
            f"the job has {outcome.how}, but its last records could not be written: "
            f"{self._trouble()}",
            code="STORAGE",
            remedy="make room; no row is lost, and the next start writes the missing records",
        )
        return replace(outcome, error=error)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Write what an earlier driver could not; leave a note of what we could not either."""
        self._adopt()
        try:
            yield
        finally:
            self.files.flush()
            if not self.pending:
                clear_note(self._plain, token=self._token)
            else:
                self._note("")

    def _ours(self) -> bool:
        lease = self._plain.read().lease
        return lease is not None and lease.owner.token == self._token

    def _adopt(self) -> None:
        left = read_note(self._plain)
        if left is None:
            return
        for path, text in left.unwritten:
            if may_wait(path) and not self.files.exists(path):
                self.files.write_text(path, text)
        clear_note(self._plain)

    def _disk(self) -> DiskTrouble | None:
        folder = self._plain.files.local()
        return None if folder is None else disk_trouble(folder)

    def _try_if_suspicious(self) -> None:
        """Find out by writing, before a record has to wait and before the lease is renewed.

        What a disk says about itself is a reason to try, no more: some report nonsense.
        """
        if not (self._unwritable or self._unrenewed or self._disk()):
            return
        path = f"{self._plain.path}/.room"
        try:
            self._plain.files.write_text(path, "\n")
            self._plain.files.delete(path)
            self._unwritable = self._unrenewed = None
        except StorageError as error:
            self._unwritable = error

    def _trouble(self) -> str | None:
        """What keeps us from writing, in a sentence."""
        error = self.files.trouble or self._unwritable or self._unrenewed
        if error is None:
            return None
        found = self._disk()
        if found is not None:
            return found.sentence(_THE_DISK)
        return f"the home does not take files: {error.message}"

    def _over(self) -> None:
        if self._since is None:
            return
        waited = max(now() - self._since, timedelta(0))
        self._since, self._said = None, 0.0
        with self._lock:
            self._noted = False
            clear_note(self._plain, token=self._token)
        self._say(f"the home takes files again, after {format_duration(waited)}: the job goes on")

    def _note(self, text: str) -> None:
        events = [(path, body) for path, body in self.files.waiting if "/events/" in path]
        with self._lock:
            self._noted = write_note(
                self._plain, text, self._since or now(), token=self._token, unwritten=events
            )
