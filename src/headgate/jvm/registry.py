"""Schemas, and the registry that keeps them, as the kernel asks for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.base.errors import GraphError
from headgate.failures import Failure
from headgate.jvm.failure import explain_failure, failure_report
from headgate.jvm.gateway import kernel_api


def registry_subject(
    spark: SparkSession, access: Mapping[str, Any], subject: str
) -> str | Failure | None:
    """The type of a subject's newest schema, none if it has none, or why nobody says it."""
    try:
        found = kernel_api(spark, "RegistryApi").latest(json.dumps(access), subject)
    except (Py4JJavaError, PySparkException) as error:
        return explain_failure(error)
    return None if found is None else str(found[0])


def record_name(spark: SparkSession, topic: str) -> str:
    """The name of the record that a topic's rows are, unless they have one of their own."""
    return str(kernel_api(spark, "RegistryApi").recordName(topic))


def check_message(spark: SparkSession, columns: StructType, descriptor: str, message: str) -> None:
    """Raise if rows cannot be written as a message of Protobuf."""
    try:
        kernel_api(spark, "RegistryApi").checkMessage(columns.json(), descriptor, message)
    except (Py4JJavaError, PySparkException) as error:
        report = failure_report(error)
        if report.code != "PROTOBUF_SCHEMA":
            raise
        text = f"the rows cannot be written as Protobuf: {report.fields['text']}"
        raise GraphError(text, remedy="correct the columns or the descriptor") from error


def avro_schema_of(
    spark: SparkSession, columns: StructType, record: str, chosen: str | None
) -> str:
    """The Avro schema with which rows are written; raises if they cannot be."""
    try:
        return str(kernel_api(spark, "RegistryApi").avroOf(columns.json(), record, chosen))
    except (Py4JJavaError, PySparkException) as error:
        report = failure_report(error)
        if report.code != "AVRO_SCHEMA":
            raise
        remedy = "correct avro_schema or the columns"
        raise GraphError(str(report.fields["text"]), remedy=remedy) from error
