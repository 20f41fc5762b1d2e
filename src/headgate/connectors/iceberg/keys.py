"""Rows by their keys: which files may have them, and which rows of a file are to go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression

_MOST = 200
"""So many values are compared one by one with the bounds of files; of more, the least and most."""
_OURS, _PLACE = "__hg_ours", "__hg_place"


def near(keys: pa.Table) -> BooleanExpression:
    """What rows with these keys have in common, for a scan that leaves out files.

    >>> str(near(pa.table({"user": ["ann", None, "bob"]})))
    "Or(left=IsNull(term=Reference(name='user')), right=In(Reference(name='user'), {...
    """
    from pyiceberg.expressions import AlwaysTrue, And

    parts = [_near(name, keys.column(name)) for name in keys.column_names]
    return And(AlwaysTrue(), AlwaysTrue(), *parts)


def _near(name: str, values: Any) -> BooleanExpression:
    import pyarrow.compute as pc
    from pyiceberg import expressions

    made: Any = expressions  # its predicates have more parameters than their types say
    column = made.Reference(name)
    some = pc.unique(values.combine_chunks()).drop_null()
    found: BooleanExpression = made.AlwaysFalse()
    if len(some) > _MOST:
        order = pc.array_sort_indices(some)
        least, most = (some[order[at].as_py()].as_py() for at in (0, -1))
        found = made.And(made.GreaterThanOrEqual(column, least), made.LessThanOrEqual(column, most))
    elif len(some):
        found = made.In(column, some.to_pylist())
    if values.null_count:
        found = made.Or(made.IsNull(column), found)
    return found


def others(rows: pa.Table, keys: pa.Table) -> Any:
    """The places of the rows that have none of these keys; a null is a key as any other.

    >>> rows = pa.table({"user": ["ann", None, "bob"], "total": [1, 2, 3]})
    >>> others(rows, pa.table({"user": pa.array([None, "bob"])})).to_pylist()
    [0]
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    names = keys.column_names
    theirs = rows.select(names)
    ours = keys.cast(theirs.schema)
    # to group counts nulls as equal; a join of Arrow does not
    both = pa.concat_tables(
        [
            _marked(ours, True, pa.nulls(len(ours), pa.int64())),
            _marked(theirs, False, pa.array(np.arange(len(theirs)), pa.int64())),
        ]
    )
    groups = both.group_by(names).aggregate([(_OURS, "any"), (_PLACE, "list")])
    left = groups.filter(pc.invert(groups.column(f"{_OURS}_any")))
    places = pc.list_flatten(left.column(f"{_PLACE}_list")).combine_chunks()
    return places.take(pc.array_sort_indices(places))


def _marked(rows: pa.Table, ours: bool, places: Any) -> pa.Table:
    import pyarrow as pa

    marks = pa.repeat(pa.scalar(ours), len(rows))
    return rows.append_column(_OURS, marks).append_column(_PLACE, places)


def joined(parts: Sequence[pa.Table]) -> pa.Table:
    """The keys of all tasks."""
    import pyarrow as pa

    return pa.concat_tables(parts).combine_chunks()
