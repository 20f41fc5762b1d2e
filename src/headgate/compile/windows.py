"""Window steps: a keyed stream into the kernel's windows, and their rows apart again."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate import jvm
from headgate.compile.fanout import key_names
from headgate.compile.paths import Arrival, union_of
from headgate.graph.plan import EVENT_TIME, POSITION, BuiltJob, Node, WindowOp, column

_LATE = "__hg_late"
_ALL = "__hg_all"  # the key of windows without a key


def window_frame(built: BuiltJob, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
    """All rows that a window step gives: results, and late rows if anything reads them."""
    operation = node.operation
    assert isinstance(operation, WindowOp)
    if not all(EVENT_TIME in rows.columns for rows in inputs):  # rows that are only counted
        inputs = [rows.drop(EVENT_TIME) for rows in inputs]
    stream = union_of(inputs)
    keys, names = key_names(Arrival(node, stream)), list(operation.names)
    if not keys:
        stream, keys, names = jvm.unkeyed(stream, _ALL), [_ALL], [_ALL]
    if POSITION in operation.needs:
        return jvm.count_window(
            stream,
            spec=operation.spec,
            keys=keys,
            names=names,
            position=POSITION,
            time=EVENT_TIME,
            aggregates=operation.aggregates,
        )
    if operation.spec["slide"] != operation.spec["size"]:
        # the kernel gets such a row once for each window
        stream = jvm.count(stream, node.step.id, "records_in")
    wanted = bool(built.graph.consumers(node.step.id, "late"))
    return jvm.window(
        stream,
        spec=operation.spec,
        keys=keys,
        names=names,
        time=EVENT_TIME,
        aggregates=operation.aggregates,
        conditions=[column(c) for c in operation.conditions],
        late_row=node.schemas["late"].names if wanted else None,
        late=_LATE,
    )


def window_outputs(node: Node, base: DataFrame, carried: Sequence[str]) -> dict[str, DataFrame]:
    """The step's outputs, with what they carry if a window follows."""
    columns = [F.col(f"`{c}`") for c in [*node.schemas["out"].names, *carried]]
    if _LATE not in base.columns:
        return {"out": base.select(*columns)}
    late = F.col(_LATE)
    parts = [late.getField(c).alias(c) for c in node.schemas["late"].names]
    return {
        "out": base.where(late.isNull()).select(*columns),
        "late": base.where(late.isNotNull()).select(*parts),
    }
