"""RunFigures: all that is shown of a run, read from the home when it is needed, and once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import takewhile
from typing import Any

from headgate.home.event_log import EventLog
from headgate.home.layout import JobHome, RunHome
from headgate.home.model import CheckpointRecord, RunRecord
from headgate.home.read.counts import behind, left, sinks_of, source_rows
from headgate.home.read.latency import SinkLatency, sink_latencies
from headgate.home.read.steps import StepFigures, step_figures
from headgate.home.tally import Tally
from headgate.home.times import now

RATE_WINDOW = timedelta(seconds=60)
_RATE_CHECKPOINTS = 20
RECENT = 1000
"""Checkpoints that statistics are made of at most: the newest."""


class RunFigures:
    """What a run is and how far it is; the same question twice reads no file again.

    Nothing here reads more than a bounded number of files, however long the run's history is.
    """

    def __init__(self, run: RunHome) -> None:
        self.run = run

    @cached_property
    def record(self) -> RunRecord:
        """What the run is made of."""
        return self.run.read()

    @cached_property
    def graph(self) -> Mapping[str, Any]:
        """graph.json."""
        return self.run.graph()

    @cached_property
    def newest(self) -> CheckpointRecord | None:
        """The newest checkpoint."""
        return self.run.checkpoint_log.newest()

    @cached_property
    def events(self) -> EventLog:
        """What happened to it."""
        return self.run.event_log()

    @cached_property
    def steps(self) -> list[StepFigures]:
        """Its steps at the newest checkpoint."""
        return step_figures(self.graph, self.newest)

    @property
    def records_in(self) -> int | None:
        """Records that all sources and tables gave since the run's line of parents began."""
        return left(self.newest.totals, self.newest.sources) if self.newest else None

    @property
    def records_out(self) -> int | None:
        """Records that all sinks wrote since then."""
        return left(self.newest.totals, self.sinks) if self.newest else None

    @property
    def sinks(self) -> list[str]:
        """The steps that rows leave the job by."""
        return sinks_of(self.graph["steps"])

    @property
    def behind(self) -> int | None:
        """Records that were there and are not in the newest checkpoint."""
        return behind(self.newest) if self.newest else None

    @property
    def watermark(self) -> datetime | None:
        """The job's watermark after the newest checkpoint."""
        return self.newest.watermark_after if self.newest else None

    def rates(self) -> tuple[float, float]:
        """Records in and out a second over the last minute's checkpoints; reads 20 at most."""
        end = now()
        records = [
            record
            for record in self._last
            if record.completed_at
            and record.triggered_at
            and end - record.completed_at < RATE_WINDOW
        ]
        if not records:
            return 0.0, 0.0
        first = min(record.triggered_at for record in records if record.triggered_at)
        seconds = max((end - first).total_seconds(), 0.001)
        taken = sum(source_rows(record) for record in records)
        given = sum(left(record.rows, self.sinks) for record in records)
        return taken / seconds, given / seconds

    def latencies(self) -> list[SinkLatency]:
        """Of each sink over the last 20 checkpoints, those of the last minute if there are any."""
        end = now()
        fresh = [r for r in self._last if r.completed_at and end - r.completed_at < RATE_WINDOW]
        return sink_latencies(self.graph["steps"], fresh or self._last)

    @cached_property
    def _last(self) -> Sequence[CheckpointRecord]:
        """The newest checkpoints, as many as rates and latencies are made of."""
        return self.run.checkpoint_log.last(_RATE_CHECKPOINTS)

    def restarts_since(self, when: datetime) -> int:
        """Restarts since a time, the newest events first until an older one comes."""
        recent = takewhile(lambda event: event.at >= when, self.events.newest_first())
        return sum(event.kind == "restarting" for event in recent)

    @property
    def checkpoints(self) -> int:
        """Checkpoints that the run has a record of or had one, with that which it began with."""
        return self.tally.completed + (self.newest is not None and self.record.parent is not None)

    @property
    def checkpoints_kept(self) -> int:
        """Those of them that still have a record, but for single ones that were deleted."""
        ends = self.run.checkpoint_log.bounds()
        return min(self.checkpoints, ends[1] - ends[0] + 1) if ends else 0

    @cached_property
    def tally(self) -> Tally:
        """All its checkpoints in short, from the newest record.

        A record of an older Headgate has no tally: then they are counted by their files, and the
        times are those of the newest ones.
        """
        if self.newest is None:
            return Tally()
        return self.newest.tally or tally_of_records(self.run)


def tally_of_records(run: RunHome) -> Tally:
    """The tally of a run whose records have none, from the newest ones."""
    found = Tally()
    for record in run.checkpoint_log.last(RECENT):
        if record.type != "forked":
            found = found.plus(record.duration_ms, record.phases)
    own = run.checkpoint_log.count_files() - (run.read().parent is not None)
    return Tally(max(own, found.completed), found.durations, found.phases)


def newest_run(job: JobHome) -> RunFigures | None:
    """The run that a job goes on with; of one that was cancelled with its state, the last."""
    run = job.current() or next(reversed(job.runs()), None)
    return RunFigures(run) if run else None
