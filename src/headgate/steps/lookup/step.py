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
)

from headgate import jvm
from headgate.base.durations import parse_duration
from headgate.compile.keys import key_columns
from headgate.compile.rows import union_of
from headgate.connectors.base import Expr
from headgate.graph.analysis import column, expression_text
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import DELETED, EVENT_TIME, POSITION
from headgate.graph.letters import Letters, literal
from headgate.graph.operation import Fit, Operation, Shape
from headgate.graph.plan import Node
from headgate.steps.lookup.table import TableOperation
from headgate.steps.lookup.ttl import Ttl, fit_of
from headgate.steps.lookup.wait import Wait

Missing: TypeAlias = Literal["null", "drop", "side"] | Wait
_WIDTHS: list[type[DataType]] = [ByteType, ShortType, IntegerType, LongType]
FOUND = "__hg_found"
"""The column in which the kernel gives the table row."""


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
    replicated: bool = False
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
        if self.replicated:
            made["replicated"] = True
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
        if self.replicated:
            labels["state"] = "in every partition"
        return labels

    def keys(self, input: int) -> tuple[Expr, ...]:
        return self.on

    @property
    def rows_may_ride(self) -> bool:
        return True

    @property
    def places_rows(self) -> bool:
        return not self.replicated

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

    def letters(self, output: str) -> Letters | None:
        if output != "missing":
            return None
        why = literal(f"the table '{self.table}' has no row of this key")
        return Letters("TABLE_ROW_MISSING", why, self.on, replay="row")

    @property
    def passes_rows(self) -> bool:
        return not self.holds_rows

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
        return self._looked_up(job, node, stream, rows, keys, stored)

    def _looked_up(
        self,
        job: Compiling,
        node: Node,
        stream: DataFrame,
        rows: DataFrame,
        keys: Sequence[str],
        stored: Sequence[str],
    ) -> DataFrame:
        """The stream with the table's rows, of which `stored` is the key."""
        return jvm.lookup(
            stream,
            rows,
            step=node.step.id,
            stream_keys=keys,
            table_keys=stored,
            value="value",
            position=POSITION,
            deleted=DELETED,
            into=FOUND,
            missing=_mode(self.missing),
            held=EVENT_TIME if job.holds_watermark(node.step.id) else None,
            ttl_ms=0 if self.ttl is None else self.ttl.millis,
            row_time=EVENT_TIME if self._by_event_time else None,
            replicated=self.replicated,
        )

    @property
    def _by_event_time(self) -> bool:
        """Whether table rows are forgotten by their event time."""
        return self.ttl is not None and self.ttl.clock == "event"

    @property
    def _with_time(self) -> bool:
        """Whether table rows come with their event time."""
        return self._by_event_time

    def _table_rows(self, changes: DataFrame, table: Node) -> DataFrame:
        """A table's changes as a lookup stores them: key parts, value, position, deleted."""
        assert isinstance(table.operation, TableOperation)
        taken = self.take
        kept = table.schemas["out"].names if taken is None else [column(t) for t in taken]
        # a tombstone has no columns to compute a value from
        value = F.when(~F.col(DELETED), F.struct(*kept))
        keys = table.operation.key_columns
        time = [EVENT_TIME] if self._with_time else []
        return changes.select(*keys, value.alias("value"), POSITION, DELETED, *time)

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        edge = node.step.inputs[0]
        stream = job.built.node(edge.step).schemas[edge.output]
        before, hidden = ([jvm.quoted(c) for c in names] for names in (stream.names, carried))
        if self.take is None:
            added = [jvm.quoted(FOUND, alias=self.into)]
        else:
            names = node.schemas["out"].names[len(stream.names) :]
            added = [jvm.quoted(FOUND, name, alias=name) for name in names]
        columns = [*before, *added, *hidden]
        if "missing" not in node.step.outputs:
            return {"out": jvm.select(base, columns)}
        return {
            "out": jvm.select(base, columns, where=f"{FOUND} IS NOT NULL"),
            "missing": jvm.select(base, [*before, *hidden], where=f"{FOUND} IS NULL"),
        }

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        fit = fit_of(old, new)
        notes = []
        was, now = (", ".join(config["table_key"]) for config in (old, new))
        if was != now:
            notes.append(f"the key was {was} and is {now}: state goes on by the new one's values")
        if bool(old.get("replicated")) != bool(new.get("replicated")):
            where = "every partition" if new.get("replicated") else "the partition of its key"
            notes.append(f"each row is kept by {where} now")
        return Fit(fit.conflicts, "; ".join([*notes, *filter(None, [fit.note])]))

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
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str] | None:
        mode = config["missing"]
        detail = {
            "on": ", ".join(config["on"]),
            "table": config["table"],
            "missing": f"wait:{config['wait_ms']}" if mode == "wait" else mode,
            "added": ", ".join(config["take"]) if config["take"] else config["into"],
        }
        if config.get("hold_watermark") is False:
            detail["hold_watermark"] = "False"
        # format 1 had none of these, so that it is not the same
        if "ttl_ms" in config:
            detail["ttl"] = f"{config['ttl_ms']} {config['ttl_clock']}"
        if "replicated" in config:
            detail["replicated"] = "True"
        return {**detail, "state_key": json.dumps(config["table_key"])}


def _mode(missing: Missing) -> str:
    """As the kernel reads it: null, drop, side or wait:MILLISECONDS."""
    return f"wait:{_millis(missing)}" if isinstance(missing, Wait) else missing


def _millis(wait: Wait) -> int:
    return int(parse_duration(wait.timeout).total_seconds() * 1000)
