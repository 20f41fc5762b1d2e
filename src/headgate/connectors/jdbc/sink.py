"""A table of a database to write, exactly once by a transaction a task."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    LongType,
    MapType,
    NullType,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from headgate import jvm
from headgate.base.errors import GraphError
from headgate.base.secrets import protect_settings
from headgate.connectors.base import Expr, Finding, Sink, SinkSpec
from headgate.connectors.options import choice
from headgate.failures import Reason, broker_reason

_MODES = ("append", "upsert")
_RESERVED_OF_MYSQL = ("url", "autocommit", "pool", "transactionIsolation")
_RESERVED = {
    "jdbc:postgresql:": ("url", "ApplicationName", "autosave", "preferQueryMode"),
    "jdbc:mysql:": _RESERVED_OF_MYSQL,
    "jdbc:mariadb:": _RESERVED_OF_MYSQL,
}
"""How an address begins, and the options that Headgate sets there."""
_NOT_STORED = (
    CalendarIntervalType, DayTimeIntervalType, NullType, VariantType, YearMonthIntervalType,
)  # fmt: skip


class JdbcSink(Sink):
    """Writes to a table of PostgreSQL, MySQL or MariaDB, exactly once.

    Rows are appended. With `mode="upsert"` they replace those with the same `key` columns, and the
    sink also accepts streams of changes, whose deletions delete rows. Each task writes its part of
    a batch in one transaction, and records the batch in the table `headgate_batches`. `create=True`
    creates a missing table. `options` are the driver's: `user`, `password`, ...

    >>> sink = JdbcSink("jdbc:postgresql://db:5432/shop", "totals", mode="upsert", key=["user"])
    >>> sink.describe()
    'jdbc:postgresql://db:5432/shop/totals'
    """

    def __init__(
        self,
        url: str,
        table: str,
        *,
        mode: Literal["append", "upsert"] = "append",
        key: Sequence[str] = (),
        create: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.url, self.table, self.mode = url, table, mode
        self.columns = (key,) if isinstance(key, str) else tuple(key)
        """Those of the key."""
        self.create = create
        self.options = dict(options or {})
        self.key: Expr | None = _expression(self.columns)
        self._rows = StructType()
        protect_settings({"url": url, **self.options})

    @property
    def takes_changes(self) -> bool:
        return self.mode == "upsert"

    @property
    def by_task(self) -> bool:
        return True

    def describe(self) -> str:
        return f"{self.url.partition('?')[0]}/{self.table}"

    def key_text(self, columns: Sequence[str]) -> str:
        return str(list(columns))

    def config(self) -> Mapping[str, Any]:
        return {"mode": self.mode}

    def hidden_column(self, part: str, made: Column) -> Column:
        # it only has to bring the rows of one key to one task
        return F.xxhash64(made)

    def hidden_type(self, part: str, kind: DataType) -> DataType:
        return LongType()

    def check(self) -> None:
        reserved = next((r for p, r in _RESERVED.items() if self.url.startswith(p)), None)
        if reserved is None:
            raise GraphError(
                "url must be the JDBC address of a PostgreSQL, MySQL or MariaDB database",
                expected="jdbc:postgresql://host:5432/database, jdbc:mysql://host:3306/database "
                "or jdbc:mariadb://host:3306/database",
                got=repr(self.url),
                remedy="correct it; user and password go into options",
            )
        if not self.table or self.table.count(".") > 1:
            raise GraphError(
                "table must be the name of a table, perhaps with its schema: orders, shop.orders",
                got=repr(self.table),
                remedy="correct it",
            )
        choice({"mode": self.mode}, "mode", _MODES)
        if self.takes_changes and not self.columns:
            raise GraphError(
                "a sink with mode='upsert' must have a key",
                remedy="name the columns by which rows replace each other: key=['id']",
            )
        if self.columns and not self.takes_changes:
            raise GraphError(
                "a key is for mode='upsert': rows that are appended replace no others",
                got=f"key={list(self.columns)}",
                remedy="add mode='upsert', or leave the key out",
            )
        for name in (*self.options, *_named(self.url)):
            if name in reserved:
                raise GraphError(
                    f"the option '{name}' of a JDBC sink is set by Headgate",
                    remedy="leave it out",
                )

    def check_rows(self, rows: StructType) -> None:
        for field in rows.fields:
            if (found := _not_stored(field.dataType)) is not None:
                raise GraphError(
                    f"the column {field.name} cannot be stored in a table",
                    got=found.simpleString(),
                    remedy="cast it, or leave it out",
                )

    def with_rows(self, rows: StructType) -> Sink:
        made = copy.copy(self)
        made._rows = rows
        return made

    def need_client(self, spark: SparkSession) -> None:
        jvm.need_driver(spark, self.url)

    def live(self, spark: SparkSession) -> Sequence[Finding]:
        about = self.describe()
        answer = jvm.jdbc_check(spark, self._asked(), self._rows)
        if "error" in answer:
            reason = broker_reason(str(answer["error"]), Reason.DATABASE)
            text = f"{reason.text} ({about}): {answer['message']}"
            return [Finding(about, text, reason)]
        if answer.get("create"):
            return [Finding(about, f"{about}: not there, will be created")]
        count = int(answer["columns"])
        return [Finding(about, f"{about}: {count} column{'s' * (count != 1)} to write")]

    def prepare(self, spark: SparkSession) -> Sequence[str]:
        if self.create and jvm.jdbc_create(spark, self._asked(), self._rows):
            return [f"created the table {self.describe()}"]
        return ()

    def _asked(self) -> dict[str, Any]:
        return self.spec().to_json("", hidden=())

    def spec(self) -> SinkSpec:
        return SinkSpec(
            "jdbc",
            self.table,
            {
                "key_columns": list(self.columns),
                "create": self.create,
                "access": {"url": self.url, **{n: str(v) for n, v in self.options.items()}},
            },
        )


def _named(url: str) -> list[str]:
    """The options that an address has itself.

    >>> _named("jdbc:postgresql://db/shop?ssl=true&user=ann")
    ['ssl', 'user']
    """
    query = url.partition("?")[2]
    return [option.partition("=")[0] for option in query.split("&") if option]


def _expression(columns: Sequence[str]) -> Expr | None:
    """What the rows of one key share.

    >>> _expression(["user", "day"]), _expression([])
    ('struct(`user`, `day`)', None)
    """
    quoted = ["`" + name.replace("`", "``") + "`" for name in columns]
    if len(quoted) <= 1:
        return quoted[0] if quoted else None
    return f"struct({', '.join(quoted)})"


def _not_stored(kind: DataType) -> DataType | None:
    """The part of a type for which there is no column."""
    if isinstance(kind, _NOT_STORED):
        return kind
    parts: list[DataType] = []
    if isinstance(kind, StructType):
        parts = [f.dataType for f in kind.fields]
    elif isinstance(kind, ArrayType):
        parts = [kind.elementType]
    elif isinstance(kind, MapType):
        parts = [kind.keyType, kind.valueType]
    return next((found for p in parts if (found := _not_stored(p)) is not None), None)
