"""What a restore needs beside files: state written anew, sinks and sources asked."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headgate.runtime.resume import Means
from headgate.snapshots.closure import DamagedError
from headgate.snapshots.home import RunHome
from headgate.snapshots.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.compile import CompiledJob


def restore_means(compiled: CompiledJob, job: str) -> Means:
    """The means of a compiled job, with the Spark session that it was compiled in."""
    from headgate import kernel

    spark = compiled.frame.sparkSession

    def batch_is_out(run: RunHome, batch: int) -> Sequence[str]:
        # Asked through the new graph: what it has no sink for it cannot write again either.
        out = compiled.committed_batches(
            job=job, run=run.id, uid=run.read().uid, journal=run.journal
        )
        return sorted(sink for sink, last in out.items() if last >= batch)

    def verify(snapshot: Snapshot) -> DamagedError | None:
        return next(verify_data(spark, snapshot), None)

    return Means(
        batch_is_out=batch_is_out,
        rewrite=functools.partial(kernel.rewrite_state, spark),
        verify=verify,
        earliest=compiled.earliest,
    )


def verify_data(spark: SparkSession, snapshot: Snapshot) -> Iterator[DamagedError]:
    """Read every file of a snapshot that has no manifest, and give those that are damaged."""
    from headgate import kernel

    paths = {
        snapshot.files.location(f"{snapshot.folder}/{path}"): path
        for path in snapshot.closure().files
        if not path.endswith(".crc")
    }
    for path, why in kernel.verify_files(spark, list(paths)).items():
        yield DamagedError(paths[path], f"is damaged: {why}")
