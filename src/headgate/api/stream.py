"""Streams: rows on their way through a job, and the steps that can follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.api.hints import Hinted
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr, Sink
from headgate.graph.analysis import column, expression_text
from headgate.graph.keys import key_fields
from headgate.graph.operation import Transform
from headgate.graph.plan import Node, Plan
from headgate.graph.port import KeyedPort, Port
from headgate.steps.lookup import Table, Wait, add_changes_table, add_lookup
from headgate.steps.process.declare import SideOutput
from headgate.steps.sink import add_sink
from headgate.steps.stateless import add_columns_step, add_transform, add_union

if TYPE_CHECKING:
    from headgate.api.keyed import Keyed


class Stream(Hinted):
    """A stream of rows in a job. Every method returns a new stream and changes nothing.

    >>> schema = "id BIGINT, user_id BIGINT, price DOUBLE, at TIMESTAMP"
    >>> orders = job.source("orders", hg.topic("log:orders", schema=schema))

    The examples below continue from here.
    """

    def __init__(self, port: Port) -> None:
        self._port = port

    @property
    def schema(self) -> StructType:
        """The stream's columns.

        >>> orders.schema["price"].dataType.typeName()
        'double'
        """
        return self._port.schema

    @property
    def columns(self) -> list[str]:
        """The names of the stream's columns.

        >>> orders.columns
        ['id', 'user_id', 'price', 'at']
        """
        return self._port.columns

    @property
    def _plan(self) -> Plan:
        return self._port.plan

    def select(self, *columns: Expr) -> Stream:
        """Keep these columns or expressions, and no others.

        >>> orders.select("id", "price * 2 AS twice", F.year("at").alias("year")).columns
        ['id', 'twice', 'year']
        """
        made = [column(c) for c in columns]
        detail = ", ".join(expression_text(c) for c in columns)
        return self._stateless("select", lambda df: df.select(*made), detail)

    def where(self, condition: Expr) -> Stream:
        """Keep the rows for which the condition is true.

        >>> orders.where("price > 0").columns == orders.columns
        True
        >>> orders.where("prize > 0")
        Traceback (most recent call last):
        headgate.base.errors.GraphError: ...
        """
        made, text = column(condition), expression_text(condition)
        node = add_columns_step(self._port, "where", lambda df: df.where(made), text, made)
        return self._next(node)

    def with_columns(self, **columns: Expr) -> Stream:
        """Add columns, or replace those with the same name.

        >>> orders.with_columns(taxed="price * 1.2", price="round(price)").columns
        ['id', 'user_id', 'price', 'at', 'taxed']
        """
        made = {name: column(c) for name, c in columns.items()}
        detail = ", ".join(f"{expression_text(c)} AS {name}" for name, c in columns.items())
        return self._stateless("with_columns", lambda df: df.withColumns(made), detail)

    def drop(self, *columns: str) -> Stream:
        """Leave these columns out.

        >>> orders.drop("at", "user_id").columns
        ['id', 'price']
        """
        for name in columns:
            if name not in self.columns:
                raise GraphError(
                    f"there is no column '{name}' to drop",
                    step=self._port.step,
                    expected="one of " + ", ".join(self.columns),
                    remedy="correct the name",
                    location=user_location(),
                )
        return self._stateless("drop", lambda df: df.drop(*columns), ", ".join(columns))

    def union(self, *others: Stream) -> Stream:
        """All rows of this stream and of others with the same columns, matched by name.

        >>> shop = job.source("shop", hg.topic("log:shop", schema=schema))
        >>> orders.union(shop).columns == orders.columns
        True
        """
        return self._next(add_union(self._port, [other._port for other in others]))

    def transform(self, name: str, function: Callable[[DataFrame], DataFrame]) -> Stream:
        """Any stateless PySpark code, as a named step.

        >>> orders.transform("clean", lambda df: df.fillna(0).drop("at")).columns
        ['id', 'user_id', 'price']
        """
        return self._next(add_transform(self._port, name, function))

    def lookup(
        self,
        name: str,
        table: Table,
        *,
        on: Expr | Sequence[Expr],
        into: str | None = None,
        take: Sequence[Expr] | None = None,
        missing: Literal["null", "drop", "side"] | Wait = "null",
        as_of: Expr | None = None,
    ) -> Lookup:
        """Add the latest table row with the same key, as one struct column or as columns.

        `on` is the key in this stream, with as many parts as the table's key. `take` names the
        columns or expressions of the table to add; without it, the whole row is added as the struct
        `into` (by default the table's name). `missing` says what happens to a row whose key the
        table does not have: "null" (it continues with nulls), "drop", "side" (it leaves through
        `.missing`) or `Wait(timeout)` (it waits for the table row, and when the time is up, it
        leaves through `.missing`). With `as_of` and a table with `versions`, you get the row that
        was valid at a certain time instead of the latest row: "event_time", the event time of this
        stream's rows, or any timestamp. A row waits until the table's watermark has passed that
        time.

        >>> known = hg.topic("log:users", schema="id BIGINT, name STRING")
        >>> users = job.table("users", known, key="id")
        >>> orders.lookup("names", users, on="user_id", take=["name"], missing="drop").columns
        ['id', 'user_id', 'price', 'at', 'name']
        >>> rates = job.table(
        ...     "rates", hg.topic("log:rates", schema="code STRING, rate DOUBLE, since TIMESTAMP"),
        ...     key="code", versions=hg.Versions(keep="7 days"),
        ...     event_time=hg.event_time("since", idle_after="1 minute"))
        >>> orders.lookup("rate", rates, on="'EUR'", take=["rate"], as_of="at").columns
        ['id', 'user_id', 'price', 'at', 'rate']
        """
        node = add_lookup(
            self._port, name, table, on=on, into=into, take=take, missing=missing, as_of=as_of
        )
        return Lookup(Port(self._plan, node))

    def key_by(self, *columns: Expr) -> Keyed:
        """Give the stream a key, for windows and process functions.

        Without a key (`orders.key_by()`), all rows are in the same windows.

        >>> keyed = orders.key_by("user_id", "year(at) AS year")
        >>> keyed.window("latest", hg.count_window(10), F.max("id").alias("id")).columns[:2]
        ['user_id', 'year']
        """
        key_fields(self._plan, self._port.prototype(), columns, self._port.step)
        from headgate.api.keyed import Keyed  # whose steps give streams

        return Keyed(KeyedPort(self._port, columns))

    def side(self, output: str | SideOutput[Any]) -> Stream:
        """A side output of the step, by its name or by its declaration in a process function.

        >>> orders.lookup("buyers", users, on="user_id", missing="side").side("missing").columns
        ['id', 'user_id', 'price', 'at']
        """
        step, operation = self._port.node.step, self._port.node.operation
        there = step.side_outputs
        expected = "one of " + ", ".join(there) if there else "none: this step has no side outputs"
        if isinstance(output, SideOutput):
            name = operation.side_name(output)
            if name is None:
                raise GraphError(
                    f"the side output '{output.name}' is not declared by the step's process "
                    "function",
                    step=step.id,
                    expected=expected,
                    remedy="use one that it declares",
                    location=user_location(),
                )
            output = name
        if output not in there:
            raise GraphError(
                f"there is no side output '{output}'",
                step=step.id,
                expected=expected,
                remedy=operation.side_remedy(output),
                location=user_location(),
            )
        return Stream(Port(self._plan, self._port.node, output))

    def sink(self, name: str, sink: Sink) -> None:
        """Write the stream's rows.

        >>> orders.sink("copied", hg.topic("log:copied", key="user_id"))
        """
        add_sink(self._port, name, sink)

    def _stateless(self, kind: str, apply: Transform, expression: str) -> Stream:
        return self._next(add_columns_step(self._port, kind, apply, expression))

    def _next(self, node: Node) -> Stream:
        port = Port(self._plan, node)
        return Stream(port) if node.changes is None else Changes(port)


class Changes(Stream):
    """Upserts and deletions by key: each row replaces the previous one with the same key.

    Created by `aggregate`, `top` and sources of changes. Write them to sinks with keys. You can
    use select, where, with_columns and drop first, if they keep the key's columns. A row that
    does not meet the condition of a where deletes its key.

    >>> visits = job.source("visits", hg.topic("log:visits", schema="page STRING"))
    >>> counts = visits.key_by("page").aggregate("counts", F.count("*").alias("n"))
    >>> counts.where("n > 10").key
    ('page',)
    >>> counts.sink("counted", hg.topic("log:counts", key="page"))
    """

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that decide which row a new row replaces.

        >>> counts.key
        ('page',)
        """
        return self._port.changes or ()

    def as_table(self, name: str | None = None) -> Table:
        """The latest row of each key, for lookups in the same job.

        A lookup sees the changes of its own batch. The table's default name is the step's name
        followed by `_table`.

        >>> visits.lookup("so_far", counts.as_table(), on="page", take=["n"]).columns
        ['page', 'n']
        """
        return add_changes_table(self._port, name)


class SourceStream(Stream):
    """The records of a source as rows; created by `job.source`.

    >>> visits = hg.topic("log:visits", schema="page STRING")
    >>> job.source("visits", visits).columns
    ['page']
    """

    @property
    def malformed(self) -> Stream:
        """Records that did not parse, undecoded, with topic, partition, offset and reason.

        >>> rows = job.source("rows", visits, malformed="side")
        >>> rows.malformed.sink("bad", hg.topic("log:bad"))
        """
        return self.side("malformed")


class ChangesSource(SourceStream, Changes):
    """The changes of a database table; created by `job.source` from a topic with such records.

    A batch has the newest change of each key.

    >>> users = hg.topic("log:users", schema="id BIGINT, name STRING", format="debezium-json")
    >>> changed = job.source("users", users, key="id")
    >>> changed.key
    ('id',)
    >>> changed.sink("copy", hg.topic("log:copy", key="id"))
    """


class Lookup(Stream):
    """The rows of a lookup whose key was found (or all rows, with `missing="null"`).

    >>> users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    >>> orders = job.source("orders", hg.topic("log:orders", schema="user_id BIGINT"))
    >>> found = orders.lookup("users_lookup", users, on="user_id", missing="side")
    >>> found.columns
    ['user_id', 'users']
    """

    @property
    def missing(self) -> Stream:
        """The rows whose key the table does not have, unchanged.

        >>> found.missing.columns
        ['user_id']
        """
        return self.side("missing")
