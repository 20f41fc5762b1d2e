"""The way from the kernel's commit into this Python process: who writes a sink's batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from headgate.failures.user_code import FAILURES
from headgate.jvm.failure import failure_text
from headgate.jvm.gateway import PACKAGE, kernel_api

BatchWriter: TypeAlias = Callable[[DataFrame, Mapping[str, Any]], None]
"""Gets a batch's rows, and its job, run, number and token with the numbers of its tasks."""


class _PythonBatchWriter:
    """The kernel's interface of the same name, as py4j makes it out of this class."""

    def __init__(self, spark: SparkSession, write: BatchWriter) -> None:
        self._spark, self._write = spark, write

    def call(self, rows: Any, batch: str) -> str:
        """Write a batch, on the thread of the query; what went wrong as the kernel throws it."""
        try:
            # that of the query, with its settings
            session = SparkSession(self._spark.sparkContext, rows.sparkSession())
            self._write(DataFrame(rows, session), json.loads(batch))
        except FAILURES as error:
            return failure_text(error) or repr(error)
        return ""

    class Java:
        implements = (f"{PACKAGE}.sinks.python.PythonBatchWriter",)


def write_with(spark: SparkSession, spec: str, writers: Mapping[str, BatchWriter]) -> None:
    """Let these functions write the batches of sinks, by their names, of the run of a spec."""
    if not writers:
        return
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    api = kernel_api(spark, "QueryApi")
    for sink, write in writers.items():
        api.writeWith(spec, sink, _PythonBatchWriter(spark, write))
