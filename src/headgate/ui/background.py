"""BackgroundJobs: operations that need no driver, done by the server itself in threads."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from headgate.base.errors import HeadgateError, RefusedError
from headgate.home.operations import OperationRecord
from headgate.home.times import now

_KEPT = 500
_MOST_OPEN = 8
_THREADS = 2

Work = Callable[[], Mapping[str, Any]]


class BackgroundJobs:
    """Operations that this server runs; they are lost when it ends, their audit stays."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: OrderedDict[str, OperationRecord] = OrderedDict()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="headgate-ui")

    def begin(self, job: str, kind: str, args: Mapping[str, Any], work: Work) -> OperationRecord:
        """Run it in the background."""
        record = OperationRecord(f"ui-{uuid.uuid4().hex[:8]}", job, kind, "requested", now(), args)
        with self._lock:
            if sum(not one.ended for one in self._records.values()) >= _MOST_OPEN:
                raise RefusedError(
                    f"the server already runs {_MOST_OPEN} operations", remedy="try again later"
                )
            self._records[record.id] = record
            while len(self._records) > _KEPT:
                self._records.popitem(last=False)
        self._pool.submit(self._do, record.id, work)
        return record

    def of(self, job: str) -> list[OperationRecord]:
        """Operations of a job, oldest first."""
        with self._lock:
            return [record for record in self._records.values() if record.job == job]

    def close(self) -> None:
        """Accept nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _do(self, id: str, work: Work) -> None:
        self._change(id, state="running", started_at=now())
        try:
            result = work()
        except HeadgateError as error:
            self._change(id, state="failed", ended_at=now(), message=str(error))
        except Exception as error:
            message = f"unexpected {type(error).__name__}: {error}"
            self._change(id, state="failed", ended_at=now(), message=message)
        else:
            self._change(id, state="done", ended_at=now(), result=dict(result))

    def _change(self, id: str, **new: Any) -> None:
        with self._lock:
            if id in self._records:
                self._records[id] = replace(self._records[id], **new)
