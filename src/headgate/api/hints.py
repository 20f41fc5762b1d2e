"""What to write instead of a method that a stream does not have: a key first, or another name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from headgate.base.errors import GraphError, user_location

NEEDS_KEY = ("aggregate", "dedupe", "join", "step", "top", "window")
"""Methods of a stream with a key."""
_ELSEWHERE = {
    "agg": 'key_by("column").aggregate("name", ...), or .window("name", hg.tumbling(...), ...)',
    "alias": "select with `AS`",
    "distinct": 'key_by("column").dedupe("name")',
    "dropDuplicates": 'key_by("column").dedupe("name")',
    "filter": 'where("condition")',
    "foreachBatch": 'sink("name", hg.ForeachBatchSink(function))',
    "groupBy": 'key_by("column"), then .window(...) or .aggregate(...)',
    "map": 'with_columns(name="expression") or transform("name", function)',
    "process": 'job.process("name", function, name=stream.key_by("column"))',
    "selectExpr": 'select("expression AS name", ...)',
    "unionByName": "union(other)",
    "withColumn": 'with_columns(name="expression")',
    "withColumnRenamed": 'select("old AS new", ...)',
    "withWatermark": "event_time=hg.event_time(...) of its source",
    "writeStream": 'sink("name", hg.topic(...))',
}
"""What PySpark's and Flink's users write first."""


class NoSuchMethodError(GraphError, AttributeError):
    """A method that streams do not have; also an AttributeError, so that `hasattr` works.

    >>> raise no_such_method(hg.Stream, "filter")
    Traceback (most recent call last):
    headgate.api.hints.NoSuchMethodError: a stream without a key has no method 'filter': ...
    """


class Hinted:
    """Says what to write for a method that is not there."""

    if not TYPE_CHECKING:  # a type checker is to go on finding such names

        def __getattr__(self, name: str) -> object:
            """Raise, with what was meant."""
            if name.startswith("_"):
                raise AttributeError(name)
            raise no_such_method(type(self), name)


def no_such_method(kind: type, name: str) -> NoSuchMethodError:
    """The error for a method that a kind of stream does not have.

    >>> from headgate.api.stream import Stream
    >>> no_such_method(Stream, "filter").remedy
    'use where("condition")'
    """
    what = "a stream without a key" if kind.__name__ != "Keyed" else "a stream with a key"
    if name in NEEDS_KEY:
        remedy = f'give it one first: stream.key_by("column").{name}(...)'
    elif name in _ELSEWHERE:
        remedy = f"use {_ELSEWHERE[name]}"
    else:
        known = [one for one in dir(kind) if not one.startswith("_")]
        near = difflib.get_close_matches(name, known, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"it has: {', '.join(known)}"
    return NoSuchMethodError(
        f"{what} has no method '{name}'", remedy=remedy, location=user_location()
    )
