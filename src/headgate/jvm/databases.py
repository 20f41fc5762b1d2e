"""The driver of databases in the JVM, and what they say of the tables of sinks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.jvm.gateway import kernel_api
from headgate.jvm.more_jars import need_jars

_POSTGRESQL = "org.postgresql.Driver"


def need_postgresql(spark: SparkSession) -> None:
    """Bring PostgreSQL's JDBC driver to the session, unless it is there."""
    need_jars(spark, _POSTGRESQL, "postgresql-42.7.14.lock")


def jdbc_check(spark: SparkSession, sink: Mapping[str, Any], rows: StructType) -> dict[str, Any]:
    """What a database says of the table of a sink's spec, for rows with these columns.

    Either columns (how many are written), create (it is missing, and will be made), or error (a
    kind) and message.
    """
    need_postgresql(spark)
    answer = kernel_api(spark, "JdbcApi").check(json.dumps(dict(sink)), rows.json())
    found: dict[str, Any] = json.loads(answer)
    return found


def jdbc_create(spark: SparkSession, sink: Mapping[str, Any], rows: StructType) -> bool:
    """Make the table of a sink's spec if it is missing; whether it was."""
    need_postgresql(spark)
    return bool(kernel_api(spark, "JdbcApi").create(json.dumps(dict(sink)), rows.json()))
