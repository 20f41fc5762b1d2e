"""Process steps: keyed inputs into the kernel's operator, and their outputs apart again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from headgate import jvm
from headgate.compile.paths import union_of
from headgate.graph.plan import EVENT_TIME, POSITION, BuiltJob, Node, ProcessOp
from headgate.steps.process.layout import Layout
from headgate.steps.process.shape import Handler
from headgate.steps.process.step import row_codec
from headgate.steps.process.task import task_function
from headgate.steps.process.wire import KEY, OUTPUT, ROW, Wire, out_struct

INPUT = "__hg_input"
TIE = "__hg_tie"
_TIE = "struct<pane: int, row: bigint>"


def has_timers(node: Node, clock: str) -> bool:
    """Whether a step has timers of a clock."""
    operation = node.operation
    return isinstance(operation, ProcessOp) and any(
        t.clock == clock for t in operation.shape.timers
    )


def process_input(node: Node, input: int, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows of one input, in the columns that all inputs share: each has its own for its rows.

    The rows' types stand in the null columns of the other inputs, so they are made from the graph.
    """
    operation = node.operation
    assert isinstance(operation, ProcessOp)
    taken = _taken(operation.shape.inputs[input], rows)
    time = F.col(EVENT_TIME) if EVENT_TIME in rows.columns else F.lit(None).cast("timestamp")
    if POSITION in rows.columns:
        place = [F.col(POSITION)]
    else:
        place = [F.lit(None).cast("long").alias(POSITION), _tie(rows).alias(TIE)]
    return rows.select(
        *[F.col(f"`{k}`").alias(f"{KEY}{n}") for n, k in enumerate(keys)],
        F.lit(input).cast("tinyint").alias(INPUT),
        *place,
        time.alias(EVENT_TIME),
        F.struct(*[F.col(f"`{name}`") for name in taken]).alias(f"{ROW}{input}"),
    )


def _tie(rows: DataFrame) -> Column:
    """The order of rows that have no position but the same time: panes of a window one by one.

    Beyond that any order will do that a replay finds again; rows that are alike are one as another.
    """
    numbered = "pane" in rows.columns and rows.schema["pane"].dataType == IntegerType()
    pane = F.col("pane") if numbered else F.lit(None).cast("int")
    seen = [F.col(f"`{name}`") for name in rows.columns if not name.startswith("__hg_")]
    return F.struct(pane.alias("pane"), F.xxhash64(F.to_json(F.struct(*seen))).alias("row"))


def _taken(handler: Handler, rows: DataFrame) -> list[str]:
    """The columns that a handler's rows have."""
    codec = row_codec(handler, rows.schema)
    names = [n for n in rows.columns if not n.startswith("__hg_")]
    return names if codec is None else [n for n, _ in codec.parts]


def process_frame(node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
    """All rows that a process step gives, each in the column of its output."""
    operation = node.operation
    assert isinstance(operation, ProcessOp)
    count = len(operation.shape.inputs)
    types = {n: f.schema[n].dataType for f in inputs for n in f.columns if n.startswith(ROW)}
    columns = [c for c in inputs[0].columns if not c.startswith(ROW) and c != TIE]
    full = []
    if any(TIE in frame.columns for frame in inputs):
        columns.append(TIE)
        none = F.lit(None).cast(_TIE)
        inputs = [f if TIE in f.columns else f.withColumn(TIE, none) for f in inputs]
    for frame in inputs:
        rows = [
            F.col(name) if name in frame.columns else F.lit(None).cast(types[name]).alias(name)
            for name in (f"{ROW}{n}" for n in range(count))
        ]
        full.append(frame.select(*columns, *rows))
    stream = union_of(full)
    schemas = [stream.schema[f"{ROW}{n}"].dataType for n in range(count)]
    keys = [stream.schema[f"{KEY}{n}"].dataType for n in range(len(operation.names))]
    wire = Wire.of(
        node.step.id, operation.function, operation.shape, operation.names, keys, schemas,
        operation.on_error,
    )  # fmt: skip
    return jvm.process(stream, task_function(wire), _spec(node, operation))


def _spec(node: Node, operation: ProcessOp) -> dict[str, Any]:
    """What the kernel is told of a process step."""
    layout = Layout(operation.shape)
    names = list(node.schemas)

    def kept(kind: str) -> list[dict[str, Any]]:
        return [
            {
                "name": state.name,
                "key": None if state.key is None else state.key.spark.jsonValue(),
                "value": state.value.spark.jsonValue(),
                "ttl": 0 if state.ttl is None else round(state.ttl.total_seconds() * 1_000_000),
            }
            for state in operation.shape.of_kind(kind)
        ]

    return {
        "step": node.step.id,
        "keys": len(operation.names),
        "inputs": len(operation.shape.inputs),
        "main": layout.struct.jsonValue(),
        "clocks": layout.clocks,
        "lists": kept("list"),
        "maps": kept("map"),
        "outputs": [out_struct(node.schemas[name]).jsonValue() for name in names],
        "output_names": names,
        "position": POSITION,
        "time": EVENT_TIME,
    }


def process_outputs(
    built: BuiltJob, node: Node, base: DataFrame, carried: Sequence[str]
) -> dict[str, DataFrame]:
    """The step's outputs, with what they carry."""
    outputs = {}
    more = [F.col(name) for name in carried]
    for number, (name, schema) in enumerate(node.schemas.items()):
        if not built.graph.consumers(node.step.id, name) or not schema.names:
            continue
        column = F.col(f"{OUTPUT}{number}")
        parts = [column.getField(c).alias(c) for c in schema.names]
        outputs[name] = base.where(column.isNotNull()).select(*parts, *more)
    return outputs
