"""Jobs that read a broker's topic into an embedded one, for tests of sources."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import headgate as hg
from headgate.connectors.log.files import TopicFiles
from headgate.home.layout import Home
from headgate.home.model import CheckpointRecord
from headgate.home.operations import Operations
from headgate.runtime.run import RunOutcome, run
from headgate.runtime.stopping import StopRequest


class Reading:
    """A job with one source of a broker and an embedded topic to look into."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def go(self, source: hg.Source, *, malformed: Any = "fail", **options: Any) -> RunOutcome:
        """Read what is there, and stop."""

        @hg.job("reading")
        def reading(job: hg.Job) -> None:
            rows = job.source("in", source, malformed=malformed)
            rows.sink("out", hg.LogSink(str(self.folder / "out")))
            if malformed == "side":
                rows.malformed.sink("bad", hg.LogSink(str(self.folder / "bad")))

        return self.run(reading, **options)

    def run(self, job: hg.JobDef, **options: Any) -> RunOutcome:
        outcome = run(
            job, home=str(self.folder / "home"), bounded=True, spark=self.spark, **options
        )
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def rows(self, sink: str = "out") -> list[dict[str, Any]]:
        topic = TopicFiles(self.folder / sink)
        return [json.loads(r.value or "") for r in topic.read()] if topic.exists() else []

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.rows())

    def checkpoints(self, job: str = "reading") -> list[CheckpointRecord]:
        """The checkpoints of the job's current run, newest last."""
        current = Home(str(self.folder / "home")).job(job).current()
        assert current is not None
        return sorted(current.checkpoints(), key=lambda record: record.id)


class Running:
    """A job that runs in a thread until it is stopped or fails; then it has an outcome."""

    def __init__(
        self,
        reading: Reading,
        rows: hg.Source,
        *,
        sink: hg.Sink | None = None,
        every: str = "100 ms",
        **settings: Any,
    ) -> None:
        self._home = str(reading.folder / "home")
        self._stop = StopRequest()
        self.outcome: RunOutcome | None = None
        self.raised: Exception | None = None

        @hg.job("reading", checkpoints=hg.Checkpoints(every=every), **settings)
        def job(job: hg.Job) -> None:
            job.source("in", rows).sink("out", sink or hg.LogSink(str(reading.folder / "out")))

        def work() -> None:
            try:
                self.outcome = run(job, home=self._home, spark=reading.spark, stop=self._stop)
            except Exception as error:
                self.raised = error

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def trigger(self) -> None:
        """Let a batch begin now."""
        Operations(Home(self._home).job("reading")).request("checkpoint", {})

    def until(self, true: Callable[[], bool], seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, f"it did not come; {self.outcome} {self.raised}"
            time.sleep(0.1)

    def result(self) -> RunOutcome:
        """How it ended by itself; raises what it raised."""
        self._thread.join(120)
        if self.raised is not None:
            raise self.raised
        assert self.outcome is not None, "it still runs"
        return self.outcome

    def stop(self) -> RunOutcome:
        self._stop.request("test")
        return self.result()
