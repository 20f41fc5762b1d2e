"""What a restore needs besides files: rewriting state, querying sinks and sources."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headgate.runtime.outputs import Outputs
from headgate.runtime.resume import RestoreServices
from headgate.snapshots.closure import DamagedError
from headgate.snapshots.snapshot import Snapshot
from headgate.snapshots.topics import TopicsNow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.compile import CompiledJob


def restore_services(compiled: CompiledJob, outputs: Outputs, topics: TopicsNow) -> RestoreServices:
    """The services of a compiled job, on the Spark session it was compiled in."""
    from headgate import jvm

    spark = compiled.frame.sparkSession

    def verify(snapshot: Snapshot) -> DamagedError | None:
        return next(verify_data(spark, snapshot), None)

    return RestoreServices(
        markers=outputs.markers,
        changes=outputs.changes,
        same_graph=outputs.same_graph,
        known_as=outputs.known_as,
        rewrite=functools.partial(jvm.rewrite_state, spark, job=compiled.frame),
        verify=verify,
        earliest=compiled.earliest,
        topics=topics,
    )


def reach(spark: SparkSession, snapshot: Snapshot) -> None:
    """Let Spark reach the files of a snapshot, wherever they are."""
    from headgate import jvm

    jvm.need_store(spark, snapshot.files.url)


def verify_data(spark: SparkSession, snapshot: Snapshot) -> Iterator[DamagedError]:
    """Read every file of a snapshot that has no manifest, and give those that are damaged."""
    from headgate import jvm

    reach(spark, snapshot)
    paths = {
        snapshot.files.location(f"{snapshot.folder}/{path}"): path
        for path in snapshot.closure().files
        if not path.endswith(".crc")
    }
    for path, why in jvm.verify_files(spark, list(paths)).items():
        yield DamagedError(paths[path], f"is damaged: {why}")
