"""Rows on their way: as they arrive at a step, and several frames of them as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate import jvm
from headgate.graph.plan import Node


@dataclass(frozen=True)
class Arrival:
    """Rows as they arrive at a sink or at a stateful step."""

    node: Node
    rows: DataFrame
    input: int = 0
    """Which of the step's inputs they are for."""


def union_of(frames: Sequence[DataFrame]) -> DataFrame:
    """The union of frames of one schema, some of which carry rows that are bound for sinks."""
    riding = [f.schema[jvm.OUT].dataType for f in frames if jvm.OUT in f.columns]
    result: DataFrame | None = None
    for frame in frames:
        if riding and jvm.OUT not in frame.columns:
            frame = frame.withColumn(jvm.OUT, F.lit(None).cast(riding[0]))
        result = frame if result is None else result.unionByName(frame)
    assert result is not None
    return result
