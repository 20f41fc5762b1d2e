"""The driver of databases in the JVM, and what they say of the tables of sinks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.jvm.gateway import kernel_api
from headgate.jvm.more_jars import need_jars

_POSTGRESQL = ("org.postgresql.Driver", "postgresql-42.7.14.lock")
_MARIADB = ("org.mariadb.jdbc.Driver", "mariadb-java-client-3.5.11.lock")
_DRIVERS = {"postgresql": _POSTGRESQL, "mysql": _MARIADB, "mariadb": _MARIADB}


def need_driver(spark: SparkSession, url: str) -> None:
    """Bring the JDBC driver of an address to the session, unless it is there."""
    need_jars(spark, *_DRIVERS[url.split(":", 2)[1]])


def jdbc_check(spark: SparkSession, sink: Mapping[str, Any], rows: StructType) -> dict[str, Any]:
    """What a database says of the table of a sink's spec, for rows with these columns.

    Either columns (how many are written), create (it is missing, and will be made), or error (a
    kind) and message.
    """
    need_driver(spark, sink["access"]["url"])
    answer = kernel_api(spark, "JdbcApi").check(json.dumps(dict(sink)), rows.json())
    found: dict[str, Any] = json.loads(answer)
    return found


def jdbc_create(spark: SparkSession, sink: Mapping[str, Any], rows: StructType) -> bool:
    """Make the table of a sink's spec if it is missing; whether it was."""
    need_driver(spark, sink["access"]["url"])
    return bool(kernel_api(spark, "JdbcApi").create(json.dumps(dict(sink)), rows.json()))
