"""Expressions of users: read as Columns, written as text, and checked on empty streams."""

from __future__ import annotations

import difflib

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.base.errors import GraphError, Location, user_location
from headgate.connectors.base import Expr
from headgate.graph.operation import Transform


def analysed(df: DataFrame, step: str, work: Transform, what: str) -> DataFrame:
    """Run a piece of user code on a prototype; an analysis error becomes a sentence of ours."""
    location = user_location()
    try:
        return work(df)
    except AnalysisException as error:
        raise _explain(error, df, step, what, location) from error


def _explain(
    error: AnalysisException, df: DataFrame, step: str, what: str, location: Location | None
) -> GraphError:
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    missing = parameters.get("objectName") or parameters.get("fieldName")
    if condition.startswith("UNRESOLVED_COLUMN") and missing:
        name = missing.replace("`", "")
        near = difflib.get_close_matches(name.split(".")[-1], df.columns, n=1)
        hint = f"did you mean '{near[0]}'?" if near else "use one of the columns that are there"
        return GraphError(
            f"there is no column '{name}' in {what}",
            step=step,
            expected="one of " + ", ".join(df.columns),
            remedy=hint,
            location=location,
        )
    reason = str(error).strip().splitlines()[0].split(" SQLSTATE")[0]
    if isinstance(error, ParseException):
        return GraphError(
            f"{what} is not SQL: {reason.removeprefix(f'[{condition}]').strip().rstrip('.')}",
            step=step,
            remedy="correct the expression",
            location=location,
        )
    return GraphError(
        f"{what} does not fit the stream: {reason}",
        step=step,
        remedy="correct the expression",
        location=location,
    )


def column(expression: Expr) -> Column:
    """A Column or a SQL expression, as a Column."""
    return F.expr(expression) if isinstance(expression, str) else expression


def expression_text(expression: Expr) -> str:
    """An expression as text: it stands in the graph and decides whether the graph changed."""
    if isinstance(expression, str):
        return expression
    return str(expression).removeprefix("Column<'").removesuffix("'>")
