"""The job's sinks as one writer: each sink's rows are a struct in a column of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate import kernel
from headgate.compile.paths import Arrival
from headgate.plan import BuiltJob, Node, SinkOp, column

KEY = "__hg_key"


def sink_row(arrival: Arrival) -> DataFrame:
    """A sink's rows, with the record key first where the sink has one."""
    sink = _sink_of(arrival.node).sink
    if sink.key is None:
        return arrival.rows
    key = column(sink.key).cast("string").alias(KEY)
    return arrival.rows.select(key, *[F.col(f"`{c}`") for c in arrival.rows.columns])


def _sink_of(node: Node) -> SinkOp:
    assert isinstance(node.operation, SinkOp)
    return node.operation


@dataclass(frozen=True)
class Sinks:
    """The sinks of a job, numbered in the order in which they were written."""

    nodes: tuple[Node, ...]
    schemas: tuple[StructType, ...]

    @staticmethod
    def of(job: BuiltJob) -> Sinks:
        """The sinks of a job."""
        nodes = tuple(n for n in job.nodes if isinstance(n.operation, SinkOp))
        schemas = []
        for node in nodes:
            (edge,) = node.step.inputs
            rows = job.node(edge.step).schemas[edge.output]
            if _sink_of(node).sink.key is not None:
                rows = StructType(StructType().add(KEY, "string").fields + rows.fields)
            schemas.append(rows)
        return Sinks(nodes, tuple(schemas))

    def number(self, step: str) -> int:
        """The place of a sink."""
        return [n.step.id for n in self.nodes].index(step)

    def leaf(self, step: str, rows: DataFrame) -> DataFrame:
        """Rows of one sink as rows of the writer."""
        number = self.number(step)
        struct = F.struct(*[F.col(f"`{c}`") for c in rows.columns])
        slots = [
            (struct if i == number else F.lit(None).cast(schema)).alias(f"r{i}")
            for i, schema in enumerate(self.schemas)
        ]
        return rows.select(F.lit(number).alias(kernel.SINK), *slots)

    def nothing(self, rows: DataFrame) -> DataFrame:
        """A source without rows as rows of the writer."""
        slots = [F.lit(None).cast(s).alias(f"r{i}") for i, s in enumerate(self.schemas)]
        return rows.select(F.lit(None).cast("int").alias(kernel.SINK), *slots)

    @property
    def exactly_once(self) -> bool:
        """Whether any of the sinks is written exactly once."""
        return any(_sink_of(n).sink.exactly_once for n in self.nodes)

    def spec(self, *, job: str, run: str, journal: str) -> str:
        """What the kernel's writer is told, as JSON."""
        sinks: list[dict[str, Any]] = [
            _sink_of(n).sink.spec().to_json(n.step.id, keyed=_sink_of(n).sink.key is not None)
            for n in self.nodes
        ]
        return json.dumps({"job": job, "run": run, "journal": journal, "sinks": sinks})
