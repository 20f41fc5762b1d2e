"""A lookup as of a time: the table row of the same key that was valid then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.analysis import analysed, column, expression_text
from headgate.graph.carried import check_carried, has_carried
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import DELETED, EVENT_TIME, POSITION
from headgate.graph.operation import Fit
from headgate.graph.plan import Node
from headgate.graph.port import Port
from headgate.steps.lookup.step import FOUND, LookupStep, Missing
from headgate.steps.lookup.table import Table
from headgate.steps.lookup.versions import Versions
from headgate.steps.lookup.wait import Wait

_AT = "__hg_as_of"
_ROW_TIME = "event_time"


@dataclass(frozen=True)
class AsOfStep(LookupStep):
    """A stream row with the version of the table row that was valid at a time of it."""

    as_of: Expr | None = None
    """None is the event time of the rows."""
    versions: Versions | None = None
    kind = "lookup_as_of"

    def config(self) -> Mapping[str, Any]:
        assert self.versions is not None
        return {**super().config(), "as_of": self._text, **self.versions.config()}

    def labels(self) -> Mapping[str, str]:
        return {**super().labels(), "as_of": self._text, "versions": str(self.versions)}

    @property
    def _text(self) -> str:
        return _ROW_TIME if self.as_of is None else expression_text(self.as_of)

    @property
    def needs(self) -> tuple[str, ...]:
        return (EVENT_TIME, POSITION) if self.as_of is None else ()

    @property
    def ends_with_time(self) -> bool:
        return True

    @property
    def needs_ticks(self) -> bool:
        return True

    @property
    def holds_rows(self) -> bool:
        return True

    @property
    def holds_watermark(self) -> bool:
        return True

    def _looked_up(
        self,
        job: Compiling,
        node: Node,
        stream: DataFrame,
        rows: DataFrame,
        keys: Sequence[str],
        stored: Sequence[str],
    ) -> DataFrame:
        assert self.versions is not None
        at: Column = F.col(EVENT_TIME) if self.as_of is None else column(self.as_of)
        return jvm.lookup_as_of(
            stream.withColumn(_AT, at),
            rows,
            step=node.step.id,
            table_name=self.table,
            keep_ms=self.versions.millis,
            stream_keys=keys,
            at=_AT,
            table_keys=stored,
            value="value",
            position=POSITION,
            deleted=DELETED,
            row_time=EVENT_TIME,
            into=FOUND,
            missing=str(self.missing),
            held=EVENT_TIME if job.holds_watermark(node.step.id) else None,
        )

    @property
    def _with_time(self) -> bool:
        return True

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        fit = super().fits(old, new, gains)
        if old["keep_ms"] >= new["keep_ms"]:
            return fit
        note = "versions are kept for longer; those that are gone do not come back"
        return Fit(fit.conflicts, "; ".join([*filter(None, [fit.note]), note]))

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> None:
        return None


def checked_as_of(
    port: Port, name: str, table: Table, as_of: Expr, missing: Missing
) -> tuple[Expr | None, Versions]:
    """The time at which a version must have been valid, and the table's versions."""
    versions = table._step.versions
    if versions is None:
        raise GraphError(
            f"the table '{table.name}' must keep versions for a lookup as of a time",
            step=name,
            remedy="make it with versions=hg.Versions(keep=...) and event_time=...",
            location=user_location(),
        )
    if isinstance(missing, Wait):
        raise GraphError(
            "missing must be 'null', 'drop' or 'side' in a lookup as of a time",
            step=name,
            got=repr(missing),
            remedy="leave Wait out: rows wait until the table has passed their time anyhow",
            location=user_location(),
        )
    plan = port.plan
    if (isinstance(as_of, str) and as_of == _ROW_TIME) and (
        # a stream without event time may have a column of that name
        has_carried(plan, port.node, port.output, EVENT_TIME) or as_of not in port.columns
    ):
        check_carried(plan, port.node, port.output, name, EVENT_TIME)
        return None, versions
    if not isinstance(as_of, str | Column):
        raise GraphError(
            "as_of must be 'event_time', a column or a SQL expression",
            step=name,
            got=repr(as_of),
            remedy="write as_of='event_time' for the event time of the stream's rows",
            location=user_location(),
        )
    made = column(as_of)
    found = analysed(port.prototype(), name, lambda df: df.select(made.alias("t")), "as_of")
    if not isinstance(found.schema["t"].dataType, TimestampType):
        raise GraphError(
            "as_of must be a timestamp",
            step=name,
            expected="a TIMESTAMP",
            got=found.schema["t"].dataType.simpleString().upper(),
            remedy="convert it, for instance CAST(... AS TIMESTAMP)",
            location=user_location(),
        )
    plan.note_changing(name, found)
    return as_of, versions
