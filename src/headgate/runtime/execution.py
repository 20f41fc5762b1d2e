"""What the parts of one start of a job share: its home, its lease, its session and its drive."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headgate.base.errors import HeadgateError, NotFoundError
from headgate.home.layout import Home, RunHome
from headgate.home.model import CheckpointRecord, EventRecord
from headgate.runtime.drive import Drive, LeaseLostError
from headgate.runtime.fencing import Fences
from headgate.runtime.health import Health, HomeCheck
from headgate.runtime.home_probe import HomeProbe
from headgate.runtime.lease import Lease
from headgate.runtime.live import Display
from headgate.runtime.metric_writer import MetricWriter
from headgate.runtime.operation_queue import OperationQueue
from headgate.runtime.options import RunOptions, RunOutcome
from headgate.runtime.patience import Patience
from headgate.runtime.restarts import Restarts
from headgate.runtime.stopping import StopRequest
from headgate.runtime.waiting import WaitingWatch
from headgate.snapshots.savepoints import SavepointRecord, create_savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.graph.definition import JobDefinition
    from headgate.graph.plan import BuiltJob


class Execution:
    """One start of a job while it happens; ``run.py`` fills it in, step by step."""

    lease: Lease
    patience: Patience
    metrics: MetricWriter
    operations: OperationQueue
    spark: SparkSession
    built: BuiltJob
    fences: Fences
    probe: HomeProbe
    drive: Drive | None = None
    """The run under way; another one after a restart elsewhere."""
    waiting: WaitingWatch | None = None
    """Looks after what the job waits for."""
    outcome: RunOutcome | None = None

    def __init__(
        self,
        job: JobDefinition,
        options: RunOptions,
        stop: StopRequest,
        display: Display,
        on_event: Callable[[EventRecord], None],
    ) -> None:
        self.job = job
        self.options = options
        self.stop = stop
        self.display = display
        self.home = Home(options.home).job(options.name or job.name)
        self.restarts = Restarts(job.restart)
        self.health = Health(HomeCheck(self.home.read), limit=options.health_limit_seconds)
        self._on_event = on_event
        self._written = 0
        self._began = time.monotonic()

    def poll(self) -> None:
        """What is done between two looks at the query; raises once the lease is lost."""
        supervisor = self.drive.supervisor if self.drive else None
        self.health.polled(
            self.last_trigger(),
            triggered=supervisor is not None and supervisor.triggered is not None,
        )
        self.display.tick()
        if self.lease.lost is not None:
            raise LeaseLostError(self.lease.lost)
        self.patience.poll()
        self.probe.poll()
        self.operations.poll()

    def poll_query(self) -> None:
        """The same while the query runs."""
        self.metrics.running()
        self.poll()

    def event(self, run: RunHome, kind: str, **details: Any) -> None:
        """Write an event of a run down and pass it on."""
        event = run.add_event(kind, **details)
        self.metrics.event(event.kind, event.at)
        self._on_event(event)

    def checkpoint_written(self, record: CheckpointRecord) -> None:
        """Count a checkpoint and show it."""
        self._written += 1
        self.metrics.checkpoint(record)
        self.display.checkpoint(record)

    def savepoint(self, label: str | None) -> Mapping[str, Any]:
        """Take a savepoint of the run under way."""
        if self.drive is None:
            raise NotFoundError("the job has not started yet", remedy="try again in a moment")
        return create_savepoint(self.drive.run, label=label).to_json()

    def last_trigger(self) -> object:
        """A value that changes whenever a trigger has ended."""
        drive = self.drive
        supervisor = drive.supervisor if drive else None
        return (id(drive), id(supervisor), supervisor.triggered if supervisor else None)

    def query(self) -> Any:
        """The query under way, if there is one."""
        return self.drive.query if self.drive else None

    def outcome_of(
        self,
        drive: Drive,
        how: str,
        *,
        saved: SavepointRecord | None = None,
        error: HeadgateError | None = None,
    ) -> RunOutcome:
        """What ``run`` returns if it ends now."""
        return RunOutcome(
            job=self.home.name,
            run=drive.run.id,
            how=how,
            checkpoint=drive.last_checkpoint,
            checkpoints=self._written,
            seconds=time.monotonic() - self._began,
            savepoint=saved.label if saved else None,
            error=error,
        )
