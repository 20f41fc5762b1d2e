"""The driver's side of operations: picks requests up from the home and carries them out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from headgate.base.errors import HeadgateError, RefusedError
from headgate.home.layout import JobHome
from headgate.home.operations import OperationRecord, Operations
from headgate.home.times import now
from headgate.runtime.stopping import Resume, StopPlan, StopRequest
from headgate.snapshots.savepoints import check_label
from headgate.snapshots.snapshot import find_snapshot

_POLL_SECONDS = 0.5
_REMOTE_POLL_SECONDS = 2.0  # each look is a request that an object store bills
_KEEP = timedelta(days=30)
_ENDING = ("stop", "cancel", "restart")


class OperationQueue:
    """Carries out operations between two polls of the query, in the thread that drives it.

    1. ``open`` settles what an earlier driver left behind.
    2. ``poll`` picks up requests. A savepoint is taken at once, a checkpoint is waited for, and a
       stop, cancel or restart becomes the ``stop_plan`` that ends the watch of the query.
    3. ``end`` records the result of the plan, ``close`` fails what will not be done any more.
    """

    def __init__(
        self,
        job: JobHome,
        stop: StopRequest,
        *,
        token: str,
        savepoint: Callable[[str | None], Mapping[str, Any]],
        checkpoint: Callable[[datetime], Mapping[str, Any] | None],
    ) -> None:
        """``checkpoint`` gives the one whose trigger began after that time, or nothing yet."""
        self._operations = Operations(job)
        self._job = job
        self._stop = stop
        self._token = token
        self._savepoint = savepoint
        self._checkpoint = checkpoint
        self._every = _POLL_SECONDS if job.files.local() is not None else _REMOTE_POLL_SECONDS
        self._next = 0.0
        self._seen: set[str] = set()
        self._waiting: list[OperationRecord] = []
        self._requested: StopPlan | None = None

    @property
    def stop_plan(self) -> StopPlan | None:
        """How the job is to be stopped, if it is to be."""
        if self._requested is not None and not (self._requested.then and self._stop):
            return self._requested
        return self._stop.plan if self._stop else None

    @property
    def stop_requested(self) -> bool:
        """Whether the job is to be stopped."""
        return self.stop_plan is not None

    def __bool__(self) -> bool:
        return self.stop_requested  # the supervisor takes the queue as its StopSignal

    @property
    def now(self) -> bool:
        """Whether the stop does not wait for the batch."""
        return self.stop_plan is not None and self.stop_plan.now

    def open(self) -> None:
        """Settle what earlier drivers left: operations they began, and stops meant for them."""
        for id in self._operations.ids():
            record = self._operations.read(id)
            if record.state == "running":
                self._fail(id, "the process that carried it out ended before it was done")
            elif record.state == "requested" and record.kind in _ENDING:
                if record.driver not in (None, self._token):
                    self._fail(id, "the process that was to do it had already ended")
            elif record.ended and now() - (record.ended_at or record.requested_at) > _KEEP:
                self._operations.forget(id)

    def poll(self) -> None:
        """Look for requests, if it is time to."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._every
        try:
            for id in self._operations.ids():
                if id not in self._seen and (record := self._operations.take(id)):
                    self._begin(record)
                self._seen.add(id)
            self._answer()
        except HeadgateError:
            pass  # a home that does not answer now: the job goes on, the request is still there

    def end(self, plan: StopPlan, *, result: Mapping[str, Any], error: str | None = None) -> None:
        """Record the result of a stop; the queue forgets the plan."""
        if plan.operation is not None:
            state = "done" if error is None else "failed"
            self._operations.end(plan.operation, state, result=result, message=error)
        if self._requested is plan:
            self._requested = None

    def close(self, how: str) -> None:
        """The job has ended: fail the requests that are not done."""
        if self._requested is not None and self._requested.operation is not None:
            self._fail(self._requested.operation, f"the job {how} before it was done")
        for record in self._waiting:
            self._fail(record.id, f"the job {how} before it was done")
        for id in self._operations.ids():
            if id not in self._seen:
                record = self._operations.read(id)
                if record.state == "requested" and record.kind in _ENDING:
                    self._fail(id, f"the job {how} by itself before the request was read")

    def _begin(self, record: OperationRecord) -> None:
        try:
            if record.kind == "savepoint":
                result = self._savepoint(record.args.get("label"))
                self._operations.end(record.id, "done", result=result)
            elif record.kind == "checkpoint":
                self._waiting.append(record)
            elif record.kind in _ENDING:
                self._request(self._plan(record))
            else:
                self._fail(record.id, f"this driver does not support the operation '{record.kind}'")
        except (HeadgateError, OSError) as error:  # the operation fails, not the job
            self._fail(record.id, str(error), getattr(error, "exit_code", None))

    def _plan(self, record: OperationRecord) -> StopPlan:
        args, reason = record.args, f"headgate {record.kind} ({record.id})"
        if record.kind == "cancel":
            return StopPlan(reason, now=True, operation=record.id)
        # check what can be checked before the job is stopped for it
        label, then = args.get("label"), None
        if label is not None:
            check_label(label)
            if self._job.files.exists(f"{self._job.path}/savepoints/{label}/manifest.json"):
                raise RefusedError(
                    f"job '{self._job.name}' already has a savepoint sp:{label}",
                    remedy="choose another label, or delete that one",
                )
        if record.kind == "restart":
            then = Resume(args.get("from"), args.get("parallelism"))
            if then.restore is not None:
                find_snapshot(self._job.home, then.restore, self._job.name)
        return StopPlan(
            reason,
            savepoint=bool(args.get("savepoint", True)),
            label=label,
            drain=bool(args.get("drain", False)),
            then=then,
            operation=record.id,
        )

    def _request(self, plan: StopPlan) -> None:
        before = self._requested
        if before is None:
            self._requested = plan
        elif plan.now and not before.now and before.operation and plan.operation:
            self._fail(before.operation, f"the job was cancelled by {plan.operation} meanwhile")
            self._requested = plan
        elif plan.operation:
            self._fail(plan.operation, f"the job is already being stopped ({before.reason})")

    def _answer(self) -> None:
        for record in list(self._waiting):
            try:
                made = self._checkpoint(record.started_at or record.requested_at)
            except HeadgateError as error:
                self._fail(record.id, str(error))
                self._waiting.remove(record)
                continue
            if made is not None:
                self._operations.end(record.id, "done", result=made)
                self._waiting.remove(record)

    def _fail(self, id: str, message: str, code: int | None = None) -> None:
        # the caller exits with the code that this error has elsewhere
        result = None if code is None else {"exit_code": int(code)}
        self._operations.end(id, "failed", message=message, result=result)
