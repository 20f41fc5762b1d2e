"""A lookup step: a stream's rows with the latest table row of the same key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from headgate import jvm
from headgate.base.durations import parse_duration
from headgate.base.errors import GraphError, user_location
from headgate.compile.keys import key_columns
from headgate.compile.rows import union_of
from headgate.connectors.base import Expr
from headgate.graph.analysis import analysed, column, expression_text
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import DELETED, EVENT_TIME, POSITION
from headgate.graph.model import Edge
from headgate.graph.operation import Fit, Operation, Shape
from headgate.graph.plan import Node
from headgate.graph.port import Port
from headgate.steps.lookup.table import Table, TableOperation, expressions, key_types
from headgate.steps.lookup.ttl import Ttl, fit_of
from headgate.steps.lookup.wait import Wait

Missing: TypeAlias = Literal["null", "drop", "side"] | Wait
_WIDTHS: list[type[DataType]] = [ByteType, ShortType, IntegerType, LongType]
_FOUND = "__hg_found"


@dataclass(frozen=True)
class LookupStep(Operation):
    """A stream row with the latest table row of its key."""

    table: str
    table_key: tuple[str, ...]
    on: tuple[Expr, ...]
    into: str
    take: tuple[Expr, ...] | None
    missing: Missing
    ttl: Ttl | None = None
    kind = "lookup"
    shape = Shape.STATEFUL

    def config(self) -> Mapping[str, Any]:
        taken = [expression_text(t) for t in self.take] if self.take is not None else None
        made: dict[str, Any] = {
            "on": [expression_text(key) for key in self.on],
            "table": self.table,
            "table_key": list(self.table_key),
            "missing": "wait" if isinstance(self.missing, Wait) else self.missing,
            "into": self.into if taken is None else None,
            "take": taken,
        }
        if isinstance(self.missing, Wait):
            made["wait_ms"] = _millis(self.missing)
            made["hold_watermark"] = self.missing.hold_watermark
        if self.ttl is not None:
            made |= self.ttl.config()
        return made

    def labels(self) -> Mapping[str, str]:
        config = self.config()
        labels = {
            "on": ", ".join(config["on"]),
            "table": self.table,
            "missing": _mode(self.missing),
            "added": ", ".join(config["take"]) if config["take"] else self.into,
        }
        if isinstance(self.missing, Wait) and not self.missing.hold_watermark:
            labels["hold_watermark"] = "False"
        if self.ttl is not None:
            labels["ttl"] = str(self.ttl)
        return labels

    def keys(self, input: int) -> tuple[Expr, ...]:
        return self.on

    @property
    def rows_may_ride(self) -> bool:
        return True

    @property
    def needs_ticks(self) -> bool:
        return self.holds_rows

    @property
    def holds_rows(self) -> bool:
        return isinstance(self.missing, Wait)

    @property
    def holds_watermark(self) -> bool:
        return isinstance(self.missing, Wait) and self.missing.hold_watermark

    def side_remedy(self, output: str) -> str:
        if output == "missing":
            return "make the lookup with missing='side' or Wait(...)"
        return super().side_remedy(output)

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        table = job.built.node(self.table)
        assert isinstance(table.operation, TableOperation)
        stream = union_of(inputs)
        keys = key_columns(self.on, stream.schema)
        rows = self._table_rows(job.table(self.table), table)
        stored = table.operation.key_columns
        # a key that widens is widened on the stream's side: the state keeps the table's type
        for at, (name, kept) in enumerate(zip(keys, stored, strict=True)):
            kind = rows.schema[kept].dataType
            if stream.schema[name].dataType != kind:
                stream = stream.withColumn(f"{name}__hg_wide", F.col(name).cast(kind))
                keys[at] = f"{name}__hg_wide"
        return jvm.lookup(
            stream,
            rows,
            step=node.step.id,
            stream_keys=keys,
            table_keys=stored,
            value="value",
            position=POSITION,
            deleted=DELETED,
            into=_FOUND,
            missing=_mode(self.missing),
            held=EVENT_TIME if job.holds_watermark(node.step.id) else None,
            ttl_ms=0 if self.ttl is None else self.ttl.millis,
            row_time=EVENT_TIME if self._by_event_time else None,
        )

    @property
    def _by_event_time(self) -> bool:
        """Whether table rows are forgotten by their event time."""
        return self.ttl is not None and self.ttl.clock == "event"

    def _table_rows(self, changes: DataFrame, table: Node) -> DataFrame:
        """A table's changes as a lookup stores them: key parts, value, position, deleted."""
        assert isinstance(table.operation, TableOperation)
        taken = self.take
        kept = table.schemas["out"].names if taken is None else [column(t) for t in taken]
        # a tombstone has no columns to compute a value from
        value = F.when(~F.col(DELETED), F.struct(*kept))
        keys = table.operation.key_columns
        time = [EVENT_TIME] if self._by_event_time else []
        return changes.select(*keys, value.alias("value"), POSITION, DELETED, *time)

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        edge = node.step.inputs[0]
        stream = job.built.node(edge.step).schemas[edge.output]
        before = [F.col(f"`{c}`") for c in stream.names]
        hidden = [F.col(c) for c in carried]
        found = F.col(_FOUND)
        if self.take is None:
            added = [found.alias(self.into)]
        else:
            names = node.schemas["out"].names[len(stream.names) :]
            added = [found.getField(name).alias(name) for name in names]
        if "missing" not in node.step.outputs:
            return {"out": base.select(*before, *added, *hidden)}
        return {
            "out": base.where(found.isNotNull()).select(*before, *added, *hidden),
            "missing": base.where(found.isNull()).select(*before, *hidden),
        }

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        fit = fit_of(old, new)
        was, now = (", ".join(config["table_key"]) for config in (old, new))
        if was == now:
            return fit
        note = f"the key was {was} and is {now}: state goes on by the values of the new one"
        return Fit(fit.conflicts, "; ".join([note, *filter(None, [fit.note])]))

    @classmethod
    def note_if_new(cls, config: Mapping[str, Any], known_sources: Sequence[str]) -> str:
        table = config["table"]
        if table not in known_sources:
            return ""
        # the offsets of a source belong to all its readers
        return f"table {table} is not read again: to fill it, give the table a new name"

    @classmethod
    def config_1(cls, detail: Mapping[str, str]) -> dict[str, Any]:
        return {
            "table": detail["table"],
            "table_key": json.loads(detail.get("state_key", "[]")),
        }

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str]:
        mode = config["missing"]
        detail = {
            "on": ", ".join(config["on"]),
            "table": config["table"],
            "missing": f"wait:{config['wait_ms']}" if mode == "wait" else mode,
            "added": ", ".join(config["take"]) if config["take"] else config["into"],
        }
        if config.get("hold_watermark") is False:
            detail["hold_watermark"] = "False"
        if "ttl_ms" in config:  # format 1 had none, so that it is not the same
            detail["ttl"] = f"{config['ttl_ms']} {config['ttl_clock']}"
        return {**detail, "state_key": json.dumps(config["table_key"])}


def add_lookup(
    port: Port,
    name: str,
    table: Table,
    *,
    on: Expr | Sequence[Expr],
    into: str | None,
    take: Sequence[Expr] | None,
    missing: Missing,
) -> Node:
    """Write a lookup down."""
    plan = port.plan
    plan.check_name(name, "lookup")
    if not isinstance(table, Table):
        raise GraphError(
            "a lookup must have a table",
            step=name,
            got=type(table).__name__,
            remedy="make one with job.table(...)",
            location=user_location(),
        )
    if into is not None and take is not None:
        raise GraphError(
            "into and take exclude each other",
            step=name,
            remedy="use into for the whole row as a struct, or take for columns of it",
            location=user_location(),
        )
    keys = expressions(on)
    types = key_types(plan, port.prototype(), keys, name, "the lookup's key (on)")
    _check_keys(name, table, types)
    _check_missing(name, missing)
    value = _taken(name, table, take)
    added = value.fields if take is not None else [StructField(into or table.name, value)]
    for column_added in added:
        if column_added.name in port.columns:
            raise GraphError(
                f"the stream already has a column '{column_added.name}'",
                step=name,
                remedy="choose another name with into, or an alias in take",
                location=user_location(),
            )
    schema = StructType([*port.schema.fields, *(StructField(f.name, f.dataType) for f in added)])
    operation = LookupStep(
        table.name,
        tuple(table._key_texts),
        keys,
        into or table.name,
        tuple(take) if take is not None else None,
        missing,
        table._step.ttl,
    )
    has_side = missing == "side" or isinstance(missing, Wait)
    key_text = ", ".join(t.simpleString() for t in table._key_types)
    waiting = f" waiting {port.schema.simpleString()}" if isinstance(missing, Wait) else ""
    expires = " expires" if operation.ttl is not None else ""
    return plan.add(
        name,
        operation,
        {"out": schema, "missing": port.schema},
        inputs=[port.edge, Edge(table.name)],
        outputs=("out", "missing") if has_side else ("out",),
        state_schema=f"({key_text}) -> {value.simpleString()}{expires}{waiting}",
        state_key=table._key_texts,
    )


def _check_keys(name: str, table: Table, types: Sequence[DataType]) -> None:
    wanted = table._key_types
    if len(types) != len(wanted):
        raise GraphError(
            f"on must have {len(wanted)} expression(s), as many as the key of table '{table.name}'",
            step=name,
            got=str(len(types)),
            remedy="give one for each part of the key",
            location=user_location(),
        )
    for given, stored in zip(types, wanted, strict=True):
        if not _fits(given, stored):
            raise GraphError(
                f"the key does not fit that of table '{table.name}'",
                step=name,
                expected=stored.simpleString().upper(),
                got=given.simpleString().upper(),
                remedy=f'cast it: on="CAST(... AS {stored.simpleString().upper()})"',
                location=user_location(),
            )


def _fits(given: DataType, stored: DataType) -> bool:
    """The same type, or a whole number that widens without loss."""
    if given == stored:
        return True
    widths = [type(given), type(stored)]
    if all(w in _WIDTHS for w in widths):
        return _WIDTHS.index(widths[0]) <= _WIDTHS.index(widths[1])
    return isinstance(given, StringType) and isinstance(stored, StringType)


def _check_missing(name: str, missing: object) -> None:
    if missing not in ("null", "drop", "side") and not isinstance(missing, Wait):
        raise GraphError(
            "missing must be 'null', 'drop', 'side' or Wait(...)",
            step=name,
            got=repr(missing),
            remedy="'null' keeps the row with nulls, 'drop' drops it, 'side' sends it to "
            ".missing, Wait(...) holds it back until the table row comes",
            location=user_location(),
        )


def _mode(missing: Missing) -> str:
    """As the kernel reads it: null, drop, side or wait:MILLISECONDS."""
    return f"wait:{_millis(missing)}" if isinstance(missing, Wait) else missing


def _millis(wait: Wait) -> int:
    return int(parse_duration(wait.timeout).total_seconds() * 1000)


def _taken(name: str, table: Table, take: Sequence[Expr] | None) -> StructType:
    if take is None:
        return table.schema
    if not take:
        raise GraphError(
            "take must name at least one column",
            step=name,
            remedy="name the table's columns to add",
            location=user_location(),
        )
    made = [column(t) for t in take]
    prototype = table._plan.prototype(table.schema)
    found = analysed(prototype, name, lambda df: df.select(*made), "take")
    table._plan.note_changing(name, found)
    return found.schema
