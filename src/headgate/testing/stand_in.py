"""A job whose sources and sinks are embedded topics in a folder, but for sinks that are kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

from headgate.api.job import JobDef
from headgate.base.settings import no_restart
from headgate.connectors.base import Source
from headgate.connectors.log.connector import LogSink, LogSource
from headgate.connectors.log.files import TopicFiles
from headgate.graph.hidden import DELETED, PREFIX
from headgate.graph.operation import Operation
from headgate.graph.plan import BuiltJob, Node, Plan


@dataclass(frozen=True)
class StandInJob(JobDef):
    """Builds the same graph, with every topic in `folder`."""

    folder: Path = Path()
    partitions: int = 2
    real_sinks: frozenset[str] = frozenset()
    """Those that are written as the job says."""

    @staticmethod
    def of(job: JobDef, folder: Path, real_sinks: Collection[str] = ()) -> StandInJob:
        """The stand-in of a job."""
        # crashes of a test are those of a process: nothing waits for the disk
        checkpoints = dataclasses.replace(job.checkpoints, durability="process")
        # a test sees the first failure, and not after the job's delays
        return StandInJob(
            job.name, checkpoints, no_restart(), job.function, job.dead_letters, folder,
            real_sinks=frozenset(real_sinks),
        )  # fmt: skip

    def build(
        self,
        params: Mapping[str, str] | None = None,
        *,
        spark: SparkSession | None = None,
        check_connectors: bool = True,
    ) -> BuiltJob:
        built = super().build(params, spark=spark, check_connectors=False)
        nodes = tuple(self._stand_in(node) for node in built.nodes)
        graph = dataclasses.replace(built.graph, steps=tuple(n.step for n in nodes))
        return BuiltJob(graph, nodes)

    def _plan(self, spark: SparkSession, params: Mapping[str, str]) -> Plan:
        return Plan(self.name, spark, params, stand_in="test")

    def source(self, name: str) -> TopicFiles:
        """The topic that stands in for a source or table."""
        return TopicFiles(self.folder / "sources" / name)

    def sink(self, name: str) -> TopicFiles:
        """The topic that stands in for a sink."""
        return TopicFiles(self.folder / "sinks" / name)

    def _stand_in(self, node: Node) -> Node:
        operation, name = node.operation, node.step.id
        if isinstance(operation.source, Source):
            topic = self.source(name)
            if not topic.exists():
                topic.create(self.partitions)
            source = LogSource(str(topic.path), node.schemas["out"])
            return self._with(node, operation.reading(source))
        if operation.sink is not None and name not in self.real_sinks:
            # rows as they are, with no key or value; changes need their key
            path, parts = str(self.sink(name).path), node.schemas["parts"]
            if DELETED not in parts.names:
                return self._with(node, operation.writing(LogSink(path)))
            keyed = StructType().add(PREFIX + "key", StringType()).add(parts[DELETED])
            made = dataclasses.replace(node, schemas={**node.schemas, "parts": keyed})
            return self._with(made, operation.writing(LogSink(path, key=operation.sink.key)))
        return node

    @staticmethod
    def _with(node: Node, operation: Operation) -> Node:
        step = dataclasses.replace(node.step, address=operation.address, config=operation.config())
        return dataclasses.replace(node, step=step, operation=operation)
