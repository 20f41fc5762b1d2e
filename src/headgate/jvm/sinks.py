"""What a job's sinks have out, and whose outputs they are."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession

from headgate.jvm.gateway import (
    kernel_api,
)


def committed_batches(spark: SparkSession, spec: str) -> str:
    """JSON: sink -> the last batch that is out, for the run of this sinks spec."""
    return str(kernel_api(spark, "SinkApi").committed(spec))


def sink_markers(spark: SparkSession, spec: str) -> dict[str, list[dict[str, Any]]]:
    """By sink, the markers of the newest batches that its tasks have out, for a run.

    Each has batch, and where they are known fingerprint, owner, time, watermark and offsets. Ends
    transactions that a dead driver left open: the caller holds the lease and owns the outputs.
    """
    found: dict[str, list[dict[str, Any]]] = json.loads(kernel_api(spark, "SinkApi").markers(spec))
    return found


def other_owners(spark: SparkSession, spec: str) -> dict[str, dict[str, str]]:
    """By sink, the owner of its output if that is another home's job: owner and home."""
    found: dict[str, dict[str, str]] = json.loads(kernel_api(spark, "SinkApi").others(spec))
    return found


def take_over(spark: SparkSession, spec: str) -> None:
    """Make the outputs of all sinks the job's own."""
    kernel_api(spark, "SinkApi").takeOver(spec)


def await_readable(spark: SparkSession, spec: str) -> bool:
    """Wait, not for long, until readers see all that a job's sinks have committed."""
    return bool(kernel_api(spark, "SinkApi").awaitReadable(spec))
