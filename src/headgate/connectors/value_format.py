"""How records hold values: each format is one object, with the options that it knows.

A connector has the list of formats that its records can have, and hands their options on.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql.types import StringType, StructType

from headgate.base.errors import GraphError
from headgate.connectors import registry
from headgate.connectors.metadata import check_raw
from headgate.connectors.options import choice
from headgate.connectors.registry import Registry

_CSV = {
    "csv_separator": "sep",
    "csv_quote": "quote",
    "csv_escape": "escape",
    "csv_null": "nullValue",
    "csv_date_format": "dateFormat",
    "csv_timestamp_format": "timestampFormat",
}
Options = Mapping[str, str]


@dataclass(frozen=True)
class ValueFormat:
    """A format of records' values that can be read."""

    name: str
    kernel: str
    """The name of the kernel's decoder."""
    options: tuple[str, ...] = ()
    """The options of a topic that are for it."""
    settings: Callable[[Options], dict[str, Any]] = field(default=lambda own: {}, repr=False)
    """What the decoder gets of them; raises for those that cannot be."""
    check: Callable[[StructType, Options], None] = field(
        default=lambda value, own: None, repr=False
    )
    """Raise if the value's columns cannot be read from it."""
    is_raw: bool = False
    """Whether a value is taken as it is, and so is a key."""
    gives_changes: bool = False
    """Whether a record may replace or delete the row of its key."""


def _registry(own: Options) -> dict[str, Any]:
    found = Registry.of(own)
    return {} if found is None else {"registry": found.to_json()}


def _needed_registry(own: Options) -> dict[str, Any]:
    if "registry" not in own:
        raise GraphError(
            "debezium-avro must have the registry that keeps the schemas of its records",
            remedy='name it: registry="https://host:8081"',
        )
    return _registry(own)


def _avro(own: Options) -> dict[str, Any]:
    framing = choice(own, "avro_framing", ("none", "confluent"))
    if "registry" in own and "avro_framing" in own:
        raise GraphError(
            "registry and avro_framing exclude each other",
            remedy="leave avro_framing out: records of a registry have the framing of Confluent",
        )
    return {"avro_schema": own.get("avro_schema"), "avro_framing": framing, **_registry(own)}


def _protobuf(own: Options) -> dict[str, Any]:
    if "descriptor" not in own or "message" not in own:
        raise GraphError(
            "protobuf must have a descriptor file and the message that values are",
            remedy='write descriptor="shop.desc", message="shop.Order"; protoc '
            "--descriptor_set_out=shop.desc --include_imports makes the file",
        )
    try:
        described = Path(own["descriptor"]).read_bytes()
    except OSError as error:
        raise GraphError(
            "descriptor must be a file that is there where the job is started",
            got=f"{own['descriptor']}: {error.strerror}",
            remedy="name the file that protoc --descriptor_set_out made",
        ) from error
    text = base64.b64encode(described).decode()
    return {"descriptor": text, "message": own["message"], **_registry(own)}


def _csv(own: Options) -> dict[str, Any]:
    given = {spark: own[name] for name, spark in _CSV.items() if name in own}
    return {"csv": given}


def _json(own: Options) -> dict[str, Any]:
    return {"json_text": _names(own), **_registry(own)}


def _names(own: Options) -> list[str]:
    """The columns that json_text names."""
    return [name.strip() for name in own.get("json_text", "").split(",") if name.strip()]


def _check_json(value: StructType, own: Options) -> None:
    kinds = {one.name: one.dataType for one in value.fields}
    for name in _names(own):
        if not isinstance(kinds.get(name), StringType):
            raise GraphError(
                "json_text must name columns of the type STRING",
                got=f"{name} {kinds[name].simpleString().upper()}" if name in kinds else name,
                remedy="name columns of the schema, which then hold the JSON of their fields",
            )


def _check_raw(value: StructType, own: Options) -> None:
    check_raw(value)


def _check_text(value: StructType, own: Options) -> None:
    if len(value.fields) != 1 or not isinstance(value.fields[0].dataType, StringType):
        raise GraphError(
            "the schema of a text record must be one column, 'value STRING'",
            got=value.simpleString(),
            remedy="give it one column, and further parts of the record with metadata=",
        )


_SOURCE_REGISTRY = (*registry.OPTIONS, "subject")
JSON = ValueFormat("json", "json", ("json_text", *_SOURCE_REGISTRY), _json, _check_json)
RAW = ValueFormat("raw", "raw", check=_check_raw, is_raw=True)
TEXT = ValueFormat("text", "raw", check=_check_text)
CSV = ValueFormat("csv", "csv", tuple(_CSV), _csv)
AVRO = ValueFormat("avro", "avro", ("avro_schema", "avro_framing", *_SOURCE_REGISTRY), _avro)
PROTOBUF = ValueFormat(
    "protobuf", "protobuf", ("descriptor", "message", *_SOURCE_REGISTRY), _protobuf
)
DEBEZIUM_JSON = ValueFormat("debezium-json", "debezium-json", gives_changes=True)
DEBEZIUM_AVRO = ValueFormat(
    "debezium-avro", "debezium-avro", _SOURCE_REGISTRY, _needed_registry, gives_changes=True,
)  # fmt: skip
ALL = (JSON, AVRO, PROTOBUF, RAW, TEXT, CSV, DEBEZIUM_JSON, DEBEZIUM_AVRO)
OF_TEXT = (replace(JSON, options=("json_text",)), RAW, TEXT, CSV, DEBEZIUM_JSON)
"""Formats of topics whose records are text, or whose schemas no registry keeps."""
OPTIONS = tuple(dict.fromkeys(option for one in ALL for option in one.options))
"""Every option that is some format's."""


def format_of(name: str, among: Sequence[ValueFormat], options: Options) -> ValueFormat:
    """A format by its name; raises for options that are another format's.

    >>> format_of("csv", ALL, {"csv_separator": ";"}).name
    'csv'
    """
    choice({"format": name}, "format", [one.name for one in among])
    chosen = next(one for one in among if one.name == name)
    for option in options:
        if option in OPTIONS and option not in chosen.options:
            known = [one.name for one in among if option in one.options]
            raise GraphError(
                f"the format {name} has no option '{option}'",
                expected=f"it with format={' or '.join(known)}" if known else None,
                remedy="leave it out, or name the format that it is for",
            )
    return chosen
