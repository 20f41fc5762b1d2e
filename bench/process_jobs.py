"""Owns the same running counts in Headgate and in Spark's transformWithState, both in Python.

Both run in the session that Headgate makes, with the settings that it chooses, and take their
records from the same source with the same decoding: what differs is the function and the sink.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headgate as hg
from bench.process import Finished
from bench.process_data import READING, TOPIC
from bench.spark_process import measure, new_folder, run_spark_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

OUTPUT = "totals"
_TOTAL = "user BIGINT, count BIGINT, before DOUBLE, last DOUBLE"


def run_spark_job(
    job: str, data_dir: Path, out_dir: Path, batch: int
) -> tuple[Finished, dict[str, float]]:
    """Run `headgate` or `tws`; what it used, and its phases in seconds."""
    new_folder(out_dir)
    return run_spark_process("bench.process_jobs", job, data_dir, out_dir, batch)


# ------------------------------------------------------------- in the process that is measured


@dataclass
class Reading:
    """An event."""

    id: int
    user: int
    page: str
    score: float


@dataclass
class Total:
    """What is known of a user with an event: how many there were, and the last two values."""

    user: int
    count: int
    before: float
    last: float


class Running(hg.Process):
    """Counts the events of a user and keeps the last value."""

    count = hg.value_state(int)
    last = hg.value_state(float)

    def on_readings(self, reading: Reading, ctx: hg.Context) -> hg.Out[Total]:
        count = (self.count.get() or 0) + 1
        before = self.last.get() or 0.0
        self.count.set(count)
        self.last.set(reading.score)
        yield Total(reading.user, count, before, reading.score)


def _headgate(spark: SparkSession, data_dir: Path, out_dir: Path, batch: int) -> None:
    from headgate.runtime.run import run

    @hg.job("bench_process", checkpoints=hg.Checkpoints(every="5 seconds"))
    def running(job: hg.Job) -> None:
        readings = job.source(
            TOPIC, hg.topic(f"log:{data_dir / TOPIC}", schema=READING, max_records=str(batch))
        )
        totals = job.process("running", Running(), readings=readings.key_by("user"))
        totals.sink(OUTPUT, hg.topic(f"log:{out_dir / OUTPUT}"))

    outcome = run(running, home=str(out_dir / "_work" / "home"), bounded=True, spark=spark)
    assert outcome.how == "finished", outcome


def _tws(spark: SparkSession, data_dir: Path, out_dir: Path, batch: int) -> None:
    """The same function by hand: state is asked for, and written, once for all rows of a key."""
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import (
        StatefulProcessor,
        StatefulProcessorHandle,
    )

    total = Row("user", "count", "before", "last")

    class RunningTws(StatefulProcessor):
        """Holds both values itself while it goes through the rows of a key."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            self._state = handle.getValueState("state", "count BIGINT, last DOUBLE")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            count, last = self._state.get() or (0, 0.0)
            for row in rows:
                count, before, last = count + 1, last, row.score
                yield total(row.user, count, before, last)
            self._state.update((count, last))

        def close(self) -> None:
            pass

    _run_tws(spark, RunningTws(), data_dir, out_dir, batch)


def _tws_each(spark: SparkSession, data_dir: Path, out_dir: Path, batch: int) -> None:
    """The same function as it is written for Headgate: two states, used with each row."""
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import (
        StatefulProcessor,
        StatefulProcessorHandle,
    )

    total = Row("user", "count", "before", "last")

    class EachTws(StatefulProcessor):
        """Counts the events of a user and keeps the last value."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            self._count = handle.getValueState("count", "value BIGINT")
            self._last = handle.getValueState("last", "value DOUBLE")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            for row in rows:
                count = (self._count.get() or (0,))[0] + 1
                before = (self._last.get() or (0.0,))[0]
                self._count.update((count,))
                self._last.update((row.score,))
                yield total(row.user, count, before, row.score)

        def close(self) -> None:
            pass

    _run_tws(spark, EachTws(), data_dir, out_dir, batch)


def _run_tws(
    spark: SparkSession, processor: StatefulProcessor, data_dir: Path, out_dir: Path, batch: int
) -> None:
    from headgate import jvm
    from headgate.connectors.log.connector import LogSource

    source = LogSource(str(data_dir / TOPIC), schema=READING, options={"max_records": str(batch)})
    readings = jvm.decode(
        source.records(spark, table=False), source.struct(), topic=source.describe(), step=TOPIC,
        malformed="fail",
    )  # fmt: skip
    query = (
        readings.groupBy("user")
        .transformWithState(processor, _TOTAL, "Append", "None")
        .writeStream.format("json")
        .option("checkpointLocation", str(out_dir / "_work" / "checkpoint"))
        .outputMode("append")
        .trigger(availableNow=True)
        .start(str(out_dir / OUTPUT))
    )
    query.awaitTermination()


JOBS = {"headgate": _headgate, "tws": _tws, "tws-each": _tws_each}

if __name__ == "__main__":
    # the worker imports the classes by the name of this module, which here is __main__
    from bench import process_jobs

    measure(process_jobs.JOBS, again=True)
