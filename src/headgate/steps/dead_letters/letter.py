"""A letter step: rows of a side output as dead letters, with key, value and headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import MapType, StringType, StructType

from headgate import jvm
from headgate.connectors import letters as names
from headgate.graph.analysis import column, expression_text
from headgate.graph.hidden import EVENT_TIME, POSITION, PREFIX
from headgate.graph.letters import Letters, literal
from headgate.graph.operation import Operation, Shape
from headgate.graph.plan import Node

LETTER = (
    StructType()
    .add("key", StringType())
    .add("value", StringType())
    .add("headers", MapType(StringType(), StringType()))
)
_TIME = f"{PREFIX}letter_time"
_KEY = f"{PREFIX}letter_key"
_ISO = "\"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\""
_LOCAL = "\"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\""
_ENTRIES = "ARRAY<STRUCT<key: STRING, value: STRING>>"
_OFFSET_BITS = 48


@dataclass(frozen=True)
class LetterStep(Operation):
    """Rows as dead letters of a step."""

    job: str
    step: str
    output: str
    what: Letters
    topic: str | None = None
    """The topic that the rows came from, if it is one."""
    carried: tuple[str, ...] = ()
    """The hidden columns that rows can bring along without a change to any state."""
    kind = "letter"
    shape = Shape.STATELESS
    one_for_one = True

    def config(self) -> Mapping[str, Any]:
        return {
            "step": self.step,
            "output": self.output,
            "exception": self.what.error,
            "key": [expression_text(key) for key in self.what.key],
        }

    @property
    def needs(self) -> tuple[str, ...]:
        return self.carried

    def through(self, node: Node, rows: DataFrame) -> DataFrame:
        own = [name for name in rows.columns if not name.startswith(PREFIX)]
        key = self._key(rows)
        if not self.what.of_record:  # a record's key is bytes that are shown as text already
            key = _shown(key)
        with_key = rows.withColumn(_KEY, key)
        value = self.what.value or _json(own)
        entries = [*self._always(), *self._perhaps(rows.columns)]
        return jvm.select(
            jvm.with_batch_time(with_key, _TIME),
            [
                f"{_KEY} AS key",
                f"CAST({value} AS STRING) AS value",
                f"map_from_entries(concat({', '.join(entries)})) AS headers",
            ],
        )

    def _key(self, rows: DataFrame) -> Column:
        """A key of one part as its text, of several as JSON."""
        from pyspark.sql import functions as F

        made = [column(key) for key in self.what.key]
        if len(made) <= 1:
            return (made[0] if made else F.lit(None)).cast("string")
        texts = [expression_text(key) for key in self.what.key]
        parts = [part.alias(text) for part, text in zip(made, texts, strict=True)]
        return F.to_json(F.struct(*parts))

    def _always(self) -> list[str]:
        found = {
            names.JOB: literal(self.job),
            names.STEP: literal(self.step),
            names.OUTPUT: literal(self.output),
            names.ERROR: literal(self.what.error),
            names.MESSAGE: f"CAST({self.what.message} AS STRING)",
            names.TIME: f"date_format({_TIME}, {_ISO})",
        }
        return [_entry(name, value) for name, value in found.items()]

    def _perhaps(self, columns: Sequence[str]) -> list[str]:
        """What not every row knows of itself."""
        found: dict[str, str] = {}
        if self.what.of_record:
            found = {name: f"`{name}`" for name in names.PLACE}
            found["timestamp"] = f"date_format(`timestamp`, {_ISO})"
        elif self.topic is not None and POSITION in self.carried and POSITION in columns:
            found["topic"] = literal(self.topic)
            found["partition"] = f"shiftright({POSITION}, {_OFFSET_BITS})"
            found["offset"] = f"{POSITION} & {(1 << _OFFSET_BITS) - 1}"
        if EVENT_TIME in columns:
            found[names.EVENT_TIME] = f"date_format({EVENT_TIME}, {_ISO})"
        return [
            f"CASE WHEN {value} IS NULL THEN CAST(array() AS {_ENTRIES})"
            f" ELSE {_entry(name, value)} END"
            for name, value in found.items()
        ]


def _shown(text: Column) -> Column:
    """A text as bytes are shown: in base64 if it begins so."""
    from pyspark.sql import functions as F

    encoded = F.concat(F.lit("base64:"), F.base64(text.cast("binary")))
    return F.when(text.startswith("base64:"), encoded).otherwise(text)


def _json(columns: Sequence[str]) -> str:
    """A row as JSON with whole times, as the source of a replay reads it."""
    row = ", ".join(f"{literal(name)}, {jvm.quoted(name)}" for name in columns)
    formats = f"map('timestampFormat', {_ISO}, 'timestampNTZFormat', {_LOCAL})"
    return f"to_json(named_struct({row}), {formats})"


def _entry(name: str, value: str) -> str:
    header = literal(f"{names.HEADERS}{name}")
    return f"array(named_struct('key', {header}, 'value', CAST({value} AS STRING)))"
