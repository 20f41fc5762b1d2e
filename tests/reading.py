"""Jobs that read a broker's topic into an embedded one, for tests of sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import headgate as hg
from headgate.connectors.log_files import TopicFiles
from headgate.runtime.run import RunOutcome, run
from headgate.snapshots.home import Home
from headgate.snapshots.model import CheckpointRecord


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
