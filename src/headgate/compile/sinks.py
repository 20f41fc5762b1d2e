"""The job's sinks as one writer: each sink's rows are a struct in a column of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from headgate import jvm
from headgate.base.schemas import has_floats
from headgate.compile.rows import Arrival
from headgate.connectors.base import Expr, Sink
from headgate.graph.analysis import column
from headgate.graph.hidden import CARRIED, DELETED, PREFIX
from headgate.graph.operation import Shape
from headgate.graph.plan import BuiltJob, Node
from headgate.jvm.python_sinks import BatchWriter


@dataclass(frozen=True)
class Writer:
    """Who writes: sinks mark their batches and outputs by it."""

    job: str
    run: str
    uid: str
    """Tells the run from one of the same number in another home."""
    journal: str
    owner: str = ""
    """Tells the job from one of the same name in another home."""
    home: str = ""
    """Where that home is, for people."""
    out_until: int | None = None
    """Batches up to it are not written: their rows are out by another run."""


def sink_row(arrival: Arrival) -> DataFrame:
    """A sink's rows: first the parts of a record that it makes, then the row's own columns."""
    sink = _sink_of(arrival.node)
    made = sink.hidden_columns()
    hidden = [c for c in CARRIED if c in arrival.rows.columns]
    # whether a change deletes is a part of the record
    told = [F.col(DELETED)] if DELETED in arrival.rows.columns else []
    rows = arrival.rows.drop(*hidden) if hidden else arrival.rows
    if not made and not told:
        return rows
    types = arrival.node.schemas["parts"]
    if (key := made.get("key")) is not None:
        # brokers place records by the bytes of their key
        rows, made = _normal_key(rows, key, made)
    parts = [
        sink.hidden_column(part, column(expression))
        .cast(types[PREFIX + part].dataType)
        .alias(PREFIX + part)
        for part, expression in made.items()
    ]
    # a sink that makes its own value needs nothing of the row
    columns = [] if "value" in made else [c for c in rows.columns if c not in (_KEY, DELETED)]
    return rows.select(*parts, *told, *[F.col(f"`{c}`") for c in columns])


_KEY = "__hg_normal_key"


def _normal_key(
    rows: DataFrame, key: Expr, made: Mapping[str, Expr]
) -> tuple[DataFrame, Mapping[str, Expr]]:
    """The rows with their key in normal form, if it has floating numbers in it."""
    with_key = rows.withColumn(_KEY, column(key))
    if not has_floats(with_key.schema[_KEY].dataType):
        return rows, made
    return jvm.normal_keys(with_key, [_KEY]), {**made, "key": F.col(_KEY)}


def hashable(schema: StructType) -> list[str]:
    """The columns by whose values rows can be spread."""
    nested = (MapType, ArrayType, StructType)
    return [f.name for f in schema.fields if not isinstance(f.dataType, nested)]


def _sink_of(node: Node) -> Sink:
    assert node.operation.sink is not None
    return node.operation.sink


def _parts_of(node: Node) -> list[str]:
    """The parts of a sink's records that its rows begin with, in their order."""
    parts = list(_sink_of(node).hidden_columns())
    changes = DELETED in node.schemas["parts"].names
    return [*parts, DELETED.removeprefix(PREFIX)] if changes else parts


@dataclass(frozen=True)
class Sinks:
    """The sinks of a job, numbered in the order in which they were written."""

    nodes: tuple[Node, ...]
    schemas: tuple[StructType, ...]

    @staticmethod
    def of(job: BuiltJob) -> Sinks:
        """The sinks of a job."""
        nodes = job.of_shape(Shape.SINK)
        schemas = []
        for node in nodes:
            (edge,) = node.step.inputs
            parts = _parts_of(node)
            hidden = [node.schemas["parts"][PREFIX + part] for part in parts]
            own_value = "value" in parts
            rows = [] if own_value else job.node(edge.step).schemas[edge.output].fields
            schemas.append(StructType(hidden + rows))
        return Sinks(nodes, tuple(schemas))

    def number(self, step: str) -> int:
        """The place of a sink."""
        return [n.step.id for n in self.nodes].index(step)

    def leaf(self, step: str, rows: DataFrame) -> DataFrame:
        """Rows of one sink as rows of the writer."""
        return jvm.sink_rows(rows, self.number(step), self.schemas)

    def placed(self, rows: DataFrame, partitions: int) -> DataFrame:
        """The writer's rows where their own values put them, if a sink's tasks must not change.

        A transaction belongs to a task and says "batch 7 of partition 3 is out". Partitions of a
        source come and go with its data; those of a keyed shuffle hold the same rows in every
        attempt. By the record's key, so that records of one key keep their order.
        """
        if not any(_sink_of(n).by_task for n in self.nodes):
            return rows
        places = [self._place(number, schema) for number, schema in enumerate(self.schemas)]
        return rows.repartition(partitions, F.coalesce(*places, F.lit(0)))

    def _place(self, number: int, schema: StructType) -> Column:
        names = [PREFIX + "key"] if PREFIX + "key" in schema.names else hashable(schema)
        columns = [F.col(f"r{number}.`{name}`") for name in names]
        spread = F.xxhash64(*columns) if columns else F.lit(0)
        return F.when(F.col(jvm.SINK) == number, spread)

    def numbered(self, rows: DataFrame) -> DataFrame:
        """The writer's rows with their places in their task, where only some sinks are sorted.

        The kernel sorts a task's rows for all sinks at once, and a sort that spills does not keep
        the order of rows that are equal to it: those of the other sinks go by their places.
        """
        others = [i for i, n in enumerate(self.nodes) if not _sink_of(n).sorts]
        if not others or len(others) == len(self.nodes):
            return rows
        return jvm.numbered(rows, others)

    def nothing(self, rows: DataFrame) -> DataFrame:
        """A source without rows as rows of the writer."""
        return jvm.sink_rows(rows, None, self.schemas)

    @property
    def by_name(self) -> dict[str, Sink]:
        """The sinks themselves."""
        return {n.step.id: _sink_of(n) for n in self.nodes}

    @property
    def exactly_once(self) -> bool:
        """Whether any of the sinks is written exactly once."""
        return any(_sink_of(n).exactly_once for n in self.nodes)

    @property
    def batch_writers(self) -> dict[str, BatchWriter]:
        """What writes the batches of sinks that Python writes, by sink."""
        found = {name: sink.batch_writer(name) for name, sink in self.by_name.items()}
        return {name: writer for name, writer in found.items() if writer is not None}

    def need_clients(self, spark: SparkSession) -> None:
        """Bring the jars that the sinks' writers need to the session."""
        for node in self.nodes:
            _sink_of(node).need_client(spark)

    def spec(self, writer: Writer) -> dict[str, Any]:
        """What the kernel's writer reads."""
        sinks: list[dict[str, Any]] = [
            _sink_of(n).spec().to_json(n.step.id, hidden=_parts_of(n)) for n in self.nodes
        ]
        return {**asdict(writer), "sinks": sinks}
