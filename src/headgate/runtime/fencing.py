"""Fences around the runs of one start: their queries commit only while the lease is ours."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

from headgate.base.errors import RefusedError
from headgate.home.layout import JobHome, RunHome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCK_SECONDS = 60.0


class Fences:
    """Begins when no other driver is in the middle of a commit, and ends with all its fences."""

    def __init__(self, job: JobHome, spark: SparkSession, token: str) -> None:
        self._job = job
        self._spark = spark
        self._token = token
        self._folders: set[str] = set()

    def __enter__(self) -> Self:
        """Let the commit end that the JVM of another driver may be in: it will make no other."""
        from headgate import jvm

        path = self._job.lock_file
        if path is not None and not jvm.await_sections(self._spark, str(path), _LOCK_SECONDS):
            raise RefusedError(
                f"Spark of an earlier start of job '{self._job.name}' is still in the middle of "
                f"a commit after {_LOCK_SECONDS:.0f} s and holds {path}",
                remedy="end that Java process, then start again",
            )
        return self

    def around(self, run: RunHome) -> None:
        """Put a fence around a run's Spark folder."""
        from headgate import jvm

        path = self._job.lock_file
        jvm.fence(
            self._spark,
            spark_folder=run.spark,
            lock_file=None if path is None else str(path),
            job_file=self._job.files.location(f"{self._job.path}/job.json"),
            token=self._token,
        )
        self._folders.add(run.spark)

    def __exit__(self, *_: object) -> None:
        from headgate import jvm

        for folder in self._folders:
            with suppress(Exception):  # a JVM that is gone has no fences
                jvm.unfence(self._spark, folder)
