"""One run under way: its query from start to end, with the batches that a stop still needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.base.errors import HeadgateError, NotFoundError, StorageError
from headgate.home.layout import RunHome
from headgate.home.model import CheckpointRecord
from headgate.runtime.home_probe import HomeUnseenError
from headgate.runtime.operation_queue import OperationQueue
from headgate.runtime.outputs import writer_of
from headgate.runtime.records import Recorder
from headgate.runtime.supervisor import Ended, Supervisor
from headgate.snapshots.spark_log import latest_committed, pending_batch

if TYPE_CHECKING:
    from headgate.compile import CompiledJob


class LeaseLostError(Exception):
    """Somebody else drives the job now: nothing more may be written."""


@dataclass
class Drive:
    """A run, the query that makes its checkpoints, and their records."""

    compiled: CompiledJob
    run: RunHome
    recorder: Recorder
    every: timedelta
    bounded: bool
    drain: bool
    """Whether all windows are closed when a bounded query has read what is there."""
    operations: OperationQueue
    on_poll: Callable[[], None]
    on_checkpoint: Callable[[CheckpointRecord], None]
    on_disk: bool = True
    """Whether its files survive a power cut."""
    batch_limit: timedelta | None = None
    """How long a batch may take."""
    check: Callable[[], None] = lambda: None
    """Raises if the query must not be started on what its sources are now."""
    supervisor: Supervisor | None = None
    query: Any = None

    def watch(self, on_started: Callable[[], None] = lambda: None) -> Ended:
        """Start the query and stay until it has ended; a stop leaves no batch half done."""
        try:
            supervisor = self._start(self.bounded, drain=self.drain)
            on_started()
            ended = supervisor.watch()
            plan = self.operations.stop_plan
            if ended.how == "stopped" and plan is not None and plan.drain:
                return self._start(True, drain=True).drain()
            if ended.how == "stopped" and self.pending is not None:
                # The stop met a trigger that had just begun. A stop on request leaves no batch
                # half done, so that the next start may bring a changed graph.
                return self._start(True).finish_one()
            return ended
        except (StorageError, HomeUnseenError) as error:
            # the disk may come back, and with it the job: its restart strategy decides
            if self.supervisor is not None:
                self.supervisor.stop_now()
            return Ended("failed", error)
        except (LeaseLostError, HeadgateError):
            if self.supervisor is not None:
                self.supervisor.stop_now()
            raise
        except Exception as error:  # the JVM is gone, or Spark refused to start the query
            return Ended("failed", error)

    @property
    def last_checkpoint(self) -> int | None:
        """The newest checkpoint that has its record."""
        return self.recorder.last.id if self.recorder.last else None

    @property
    def pending(self) -> int | None:
        """The batch that was begun and not committed."""
        return pending_batch(self.run)

    @property
    def next_batch(self) -> int:
        """The batch that is run next: the pending one again, or a new one."""
        latest = latest_committed(self.run)
        return self.pending if self.pending is not None else (-1 if latest is None else latest) + 1

    def await_readable(self) -> bool:
        """Wait, not for long, until readers of the sinks see all that was committed."""
        return self.compiled.await_readable(writer_of(self.run))

    def checkpoint_since(self, when: datetime) -> Mapping[str, Any] | None:
        """The checkpoint that has all input that was there at a time; nothing if not yet."""
        from headgate import jvm

        triggered = self.supervisor.triggered if self.supervisor else None
        if triggered is None or triggered < when:
            if self.query is not None:
                jvm.trigger_now(self.query)
            return None
        if self.last_checkpoint is None:
            raise NotFoundError(
                "the job has had no input yet, and so no checkpoint", remedy="try again later"
            )
        return {"run": self.run.id, "checkpoint": self.last_checkpoint}

    def _start(self, bounded: bool, *, drain: bool = False) -> Supervisor:
        from headgate import jvm

        # watermarks go on from the last committed batch, which must have its record for that
        for record in self.recorder.recover():
            self.on_checkpoint(record)
        if self.on_disk:
            # a killed driver may have left files that were not synced yet, or were never to be
            self.run.files.sync(self.run.spark_path)
        self.check()
        last = self.recorder.last
        self.query = self.compiled.start(
            writer=writer_of(self.run),
            checkpoint=self.run.spark,
            bounded=bounded,
            every=self.every,
            drain=drain,
            event_time=last.event_time.to_kernel() if last and last.event_time else None,
        )
        self.supervisor = Supervisor(
            self.query,
            self.recorder,
            self.operations,
            on_checkpoint=self.on_checkpoint,
            on_poll=self.on_poll,
            stop_after_batch=jvm.stop_after_batch,
            batch_limit=self.batch_limit,
        )
        return self.supervisor
