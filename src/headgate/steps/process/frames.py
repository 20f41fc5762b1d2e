"""A process step in the query: keyed inputs into the kernel's operator, outputs apart again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.compile.order import TIE, place, time_of, with_ties
from headgate.compile.rows import union_of
from headgate.graph.hidden import EVENT_TIME, POSITION, PREFIX
from headgate.graph.plan import Node
from headgate.steps.process.engine import OnError
from headgate.steps.process.function import Process
from headgate.steps.process.layout import Layout
from headgate.steps.process.records import Record
from headgate.steps.process.shape import Handler, Shape
from headgate.steps.process.task import task_function
from headgate.steps.process.wire import KEY, ROW, Wire, out_struct

INPUT = "__hg_input"


def row_codec(handler: Handler, schema: StructType) -> Record | None:
    """The dataclass of an input's rows, made from the columns that the stream has."""
    if handler.row is None:
        return None
    return handler.row.with_parts([n for n, _ in handler.row.parts if n in schema.names])


def input_frame(shape: Shape, input: int, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows of one input, in the columns that all inputs share: each has its own for its rows.

    The rows' types stand in the null columns of the other inputs, so they are made from the graph.
    """
    taken = _taken(shape.inputs[input], rows)
    return jvm.select(
        rows,
        [
            *[jvm.quoted(k, alias=f"{KEY}{n}") for n, k in enumerate(keys)],
            f"CAST({input} AS TINYINT) AS {INPUT}",
            *place(rows),
            time_of(rows),
            f"struct({', '.join(map(jvm.quoted, taken))}) AS {ROW}{input}",
        ],
    )


def _taken(handler: Handler, rows: DataFrame) -> list[str]:
    """The columns that a handler's rows have."""
    codec = row_codec(handler, rows.schema)
    names = [n for n in rows.columns if not n.startswith(PREFIX)]
    return names if codec is None else [n for n, _ in codec.parts]


def step_frame(
    node: Node,
    function: Process,
    shape: Shape,
    names: Sequence[str],
    on_error: OnError,
    inputs: Sequence[DataFrame],
) -> DataFrame:
    """All rows that a process step gives, each in the column of its output."""
    count = len(shape.inputs)
    types = {n: f.schema[n].dataType for f in inputs for n in f.columns if n.startswith(ROW)}
    columns = [c for c in inputs[0].columns if not c.startswith(ROW) and c != TIE]
    full = []
    inputs = with_ties(list(inputs))
    columns += [TIE] if TIE in inputs[0].columns else []
    for frame in inputs:
        rows = [
            F.col(name) if name in frame.columns else F.lit(None).cast(types[name]).alias(name)
            for name in (f"{ROW}{n}" for n in range(count))
        ]
        full.append(frame.select(*columns, *rows))
    stream = union_of(full)
    schemas = [stream.schema[f"{ROW}{n}"].dataType for n in range(count)]
    keys = [stream.schema[f"{KEY}{n}"].dataType for n in range(len(names))]
    wire = Wire.of(node.step.id, function, shape, tuple(names), keys, schemas, on_error)
    return jvm.process(stream, task_function(wire), _spec(node, shape, names))


def _spec(node: Node, shape: Shape, names: Sequence[str]) -> dict[str, Any]:
    """What the kernel reads of a process step."""
    layout = Layout(shape)
    outputs = list(node.schemas)

    def kept(kind: str) -> list[dict[str, Any]]:
        return [
            {
                "name": state.name,
                "key": None if state.key is None else state.key.spark.jsonValue(),
                "value": state.value.spark.jsonValue(),
                "ttl": 0 if state.ttl is None else round(state.ttl.total_seconds() * 1_000_000),
            }
            for state in shape.of_kind(kind)
        ]

    return {
        "step": node.step.id,
        "keys": len(names),
        "inputs": len(shape.inputs),
        "main": layout.struct.jsonValue(),
        "clocks": layout.clocks,
        "lists": kept("list"),
        "maps": kept("map"),
        "outputs": [out_struct(node.schemas[name]).jsonValue() for name in outputs],
        "output_names": outputs,
        "position": POSITION,
        "time": EVENT_TIME,
    }
