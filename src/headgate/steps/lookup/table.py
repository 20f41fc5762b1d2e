"""Tables: the latest row of each key of a changelog topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, StructType

from headgate import jvm
from headgate.base.durations import Duration
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr, Source
from headgate.graph.analysis import analysed, column, expression_text
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import DELETED, POSITION
from headgate.graph.operation import Operation, RawSource, Shape
from headgate.graph.plan import Node, Plan
from headgate.steps.lookup.ttl import Ttl, ttl_of
from headgate.steps.lookup.versions import Versions, versions_of
from headgate.steps.source.raw import decoded, made_by_function, source_schema
from headgate.steps.source.times import EventTime
from headgate.steps.source.watermark import Watermark, watermark_of

_SINCE_FORMAT_2 = (
    "ttl_ms", "ttl_clock", "event_time", "out_of_orderness_ms", "idle_after_ms", "replicate",
    "keep_ms",
)  # fmt: skip
KEY = "__hg_k"
"""Stands before the number of a key's part in the name of its column."""


class TableOperation(Operation):
    """What lookups ask of a table: its changes, by key."""

    shape = Shape.TABLE
    key: tuple[Expr, ...]
    ttl: Ttl | None = None
    replicate: bool = False
    versions: Versions | None = None

    @property
    def key_texts(self) -> list[str]:
        """The parts of the key as they were written."""
        return [expression_text(key) for key in self.key]

    @property
    def key_columns(self) -> list[str]:
        """The columns of the table's changes that hold the parts of the key."""
        return [f"{KEY}{number}" for number in range(len(self.key))]


@dataclass(frozen=True)
class TableStep(TableOperation):
    """Reads a changelog; the keys and `delete_when` are over its columns."""

    reads: RawSource
    key: tuple[Expr, ...]
    delete_when: Expr | None
    ttl: Ttl | None = None
    watermark: Watermark | None = None
    replicate: bool = False
    versions: Versions | None = None
    kind = "table"

    @property
    def source(self) -> RawSource:
        return self.reads

    def reading(self, source: Source) -> Operation:
        return replace(self, reads=source)

    def config(self) -> Mapping[str, Any]:
        made: dict[str, Any] = {"key": self.key_texts}
        if self.delete_when is not None:
            made["delete_when"] = expression_text(self.delete_when)
        if self.ttl is not None:
            made |= self.ttl.config()
        if self.watermark is not None:
            made |= self.watermark.config()
        if self.replicate:
            made["replicate"] = True
        if self.versions is not None:
            made |= self.versions.config()
        return made

    def labels(self) -> Mapping[str, str]:
        labels = {"key": ", ".join(self.key_texts)}
        if self.delete_when is not None:
            labels["delete_when"] = expression_text(self.delete_when)
        if self.ttl is not None:
            labels["ttl"] = str(self.ttl)
        if self.watermark is not None:
            of_time = self.watermark.config().items()
            labels |= {name: str(value) for name, value in of_time if value is not None}
        if self.replicate:
            labels["replicate"] = "in every partition"
        if self.versions is not None:
            labels["versions"] = str(self.versions)
        return labels

    def event_time(self) -> Mapping[str, int | None] | None:
        return None if self.watermark is None else self.watermark.for_kernel()

    @property
    def record_key(self) -> Sequence[str]:
        return self.key_texts

    def keys(self, input: int) -> tuple[Expr, ...]:
        return tuple(self.key_columns)

    def check(self) -> None:
        if isinstance(self.reads, Source):
            self.reads.check()

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        """The changes: the table's columns, the parts of the key, position and deleted.

        Where the ttl goes by event time, that of each row as well.
        """
        name = node.step.id
        if isinstance(self.reads, Source):
            df = decoded(
                job.spark,
                name,
                self.reads,
                node.schemas["out"],
                malformed="fail",
                table=True,
                key_columns=self._plain_keys(node),
            )
            deleted = F.col(DELETED)
        else:
            made = made_by_function(job.spark, name, self.reads)
            df = made.withColumn(POSITION, F.lit(None).cast("long"))
            deleted = F.lit(False)
        if self.delete_when is not None:
            deleted = deleted | F.coalesce(column(self.delete_when), F.lit(False))
        if self.watermark is not None:
            df = self.watermark.observed(df, name)
        keys = {name: column(k) for name, k in zip(self.key_columns, self.key, strict=True)}
        return jvm.normal_keys(df.withColumns({**keys, DELETED: deleted}), list(keys))

    def _plain_keys(self, node: Node) -> list[str]:
        """The key's columns, into which a tombstone's key is read; none if a part is an expression.

        A tombstone has nothing but its key, from which an expression's columns cannot be computed.
        """
        names = node.schemas["out"].names
        plain = [k for k in self.key if isinstance(k, str) and k in names]
        return plain if len(plain) == len(self.key) else []

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str]:
        detail = {"address": address, "key": ", ".join(config["key"])}
        if "delete_when" in config:
            detail["delete_when"] = config["delete_when"]
        # format 1 had none of these, so that a table with one is not the same
        for name in _SINCE_FORMAT_2:
            if config.get(name) is not None:
                detail[name] = str(config[name])
        return detail


class Table:
    """The latest row of each key of a changelog topic; created by `job.table`.

    >>> users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    """

    def __init__(self, plan: Plan, node: Node, key_types: Sequence[DataType]) -> None:
        self._plan = plan
        self._node = node
        self._key_types = tuple(key_types)

    @property
    def name(self) -> str:
        """The table's name.

        >>> users.name
        'users'
        """
        return self._node.step.id

    @property
    def schema(self) -> StructType:
        """The table's columns.

        >>> users.schema.names
        ['id', 'name']
        """
        return self._node.schemas["out"]

    @property
    def _step(self) -> TableOperation:
        operation = self._node.operation
        assert isinstance(operation, TableOperation)
        return operation

    @property
    def _key_texts(self) -> list[str]:
        return self._step.key_texts


def expressions(given: Expr | Sequence[Expr]) -> tuple[Expr, ...]:
    """One expression or several, as several."""
    return (given,) if isinstance(given, str | Column) else tuple(given)


def key_types(
    plan: Plan, df: DataFrame, keys: Sequence[Expr], step: str, what: str
) -> list[DataType]:
    """The types of a key's parts."""
    made = [column(k).alias(f"k{i}") for i, k in enumerate(keys)]
    found = analysed(df, step, lambda d: d.select(*made), what)
    plan.note_changing(step, found)
    return [field.dataType for field in found.schema.fields]


def add_table(
    plan: Plan,
    name: str,
    source: RawSource,
    key: Expr | Sequence[Expr],
    delete_when: Expr | None,
    ttl: Duration | None,
    event_time: EventTime | None,
    replicate: bool,
    versions: Versions | None,
) -> Table:
    """Write a table down."""
    plan.check_name(name, "table")
    kept = versions_of(name, versions, timed=event_time is not None, ttl=ttl is not None)
    if kept is not None and replicate:
        raise GraphError(
            "versions and replicate exclude each other",
            step=name,
            remedy="leave one out: rows of a lookup as of a time wait where their key is",
            location=user_location(),
        )
    timed = event_time is not None and kept is None
    forgotten = ttl_of(name, ttl, by_event_time=timed)
    keys = expressions(key)
    if not keys:
        raise GraphError(
            "the table must have a key",
            step=name,
            remedy='name it: key="id"',
            location=user_location(),
        )
    schema = source_schema(plan, name, source)
    if isinstance(source, Source):
        source.check_table()
        if source.gives_changes and not all(key in schema.names for key in map(str, keys)):
            raise GraphError(
                "the key of a database's table must be columns of it: deletions have nothing else",
                step=name,
                expected=f"some of {', '.join(schema.names)}",
                got=", ".join(map(expression_text, keys)),
                remedy='name the columns that are the key there: key="id"',
                location=user_location(),
            )
    prototype = plan.prototype(schema)
    types = key_types(plan, prototype, keys, name, "the table's key")
    if delete_when is not None:
        _check_condition(prototype, name, delete_when)
    watermark = None if event_time is None else watermark_of(plan, name, schema, event_time)
    operation = TableStep(source, keys, delete_when, forgotten, watermark, replicate, kept)
    node = plan.add(name, operation, {"out": schema})
    return Table(plan, node, types)


def _check_condition(prototype: DataFrame, name: str, delete_when: Expr) -> None:
    condition = column(delete_when)
    typed = analysed(prototype, name, lambda df: df.select(condition.alias("c")), "delete_when")
    if not isinstance(typed.schema["c"].dataType, BooleanType):
        raise GraphError(
            "delete_when must be a condition",
            step=name,
            expected="BOOLEAN",
            got=typed.schema["c"].dataType.simpleString().upper(),
            remedy='write a comparison, for instance delete_when="deleted = true"',
            location=user_location(),
        )
