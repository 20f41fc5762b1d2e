"""How a sink's rows become values, with or without a registry that keeps their schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.base.errors import GraphError
from headgate.connectors import registry
from headgate.connectors.base import Finding
from headgate.connectors.options import choice
from headgate.connectors.registry import Registry
from headgate.connectors.value_format import PROTOBUF

_OF_SUBJECT = ("subject", "subject_strategy", "record_name", "register")
_MESSAGE = ("descriptor", "message")
OPTIONS = (*registry.OPTIONS, *_OF_SUBJECT, "avro_schema", *_MESSAGE)
_STRATEGIES = ("topic-name", "record-name", "topic-record-name")


@dataclass(frozen=True)
class WrittenFormat:
    """JSON or Protobuf, and with a registry also Avro: then behind the id of a schema."""

    name: str
    registry: Registry | None
    own: Mapping[str, str]

    @staticmethod
    def of(name: str, options: Mapping[str, str], *, has_value: bool) -> WrittenFormat:
        """The format that a sink's options name; raises for those that cannot be."""
        choice({"format": name}, "format", ("json", "avro", "protobuf"))
        found = Registry.of(options)
        own = {option: options[option] for option in OPTIONS if option in options}
        if found is None and name == "avro":
            raise GraphError(
                "a sink of Avro must have the registry that gives its schema an id",
                remedy='name it: registry="https://host:8081", or make the value yourself: '
                "value=to_avro(...)",
            )
        WrittenFormat._check_message(name, own)
        lonely = [option for option in own if option not in _MESSAGE]
        if found is None and lonely:
            raise GraphError(
                f"'{lonely[0]}' is for a sink with a registry",
                remedy='name it: registry="https://host:8081", or leave the option out',
            )
        if (found is not None or name == "protobuf") and has_value:
            raise GraphError(
                f"value and {'registry' if found else 'the format protobuf'} exclude each other",
                remedy="leave value out, and let the row's columns be the value",
            )
        for option, of in (("avro_schema", ("avro",)), ("record_name", ("avro", "json"))):
            if option in own and name not in of:
                raise GraphError(
                    f"{option} is for a sink of the format {' or '.join(of)}", remedy="leave it out"
                )
        if "subject" in own and "subject_strategy" in own:
            raise GraphError(
                "subject and subject_strategy exclude each other", remedy="leave one of them out"
            )
        choice(own, "subject_strategy", _STRATEGIES)
        choice(own, "register", ("true", "false"))
        return WrittenFormat(name, found, own)

    @staticmethod
    def _check_message(name: str, own: Mapping[str, str]) -> None:
        """Raise unless a sink of Protobuf, and no other, says which message its values are."""
        if name == "protobuf":
            PROTOBUF.settings({option: own[option] for option in _MESSAGE if option in own})
        elif given := [option for option in _MESSAGE if option in own]:
            raise GraphError(
                f"'{given[0]}' is for a sink of the format protobuf", remedy="leave it out"
            )

    @property
    def _message(self) -> dict[str, Any]:
        """The descriptor file's bytes and the message's name, if values are messages."""
        if self.name != "protobuf":
            return {}
        return PROTOBUF.settings({option: self.own[option] for option in _MESSAGE})

    def check_rows(self, rows: StructType, topic: str) -> None:
        """Raise if rows with these columns cannot be written."""
        if self.name == "avro" and (spark := SparkSession.getActiveSession()) is not None:
            record = self.own.get("record_name", jvm.record_name(spark, topic))
            jvm.avro_schema_of(spark, rows, record, self.own.get("avro_schema"))
        if (message := self._message) and (spark := SparkSession.getActiveSession()) is not None:
            jvm.check_message(spark, rows, message["descriptor"], message["message"])

    def find(self, spark: SparkSession, topic: str) -> list[Finding]:
        """What the registry says about the subject, if the options tell which it is."""
        by_topic = self.own.get("subject_strategy", _STRATEGIES[0]) == _STRATEGIES[0]
        if self.registry is None or not (by_topic or "subject" in self.own):
            return []
        return [self.registry.find(spark, self.own.get("subject", f"{topic}-value"))]

    def to_json(self) -> dict[str, Any]:
        """What the kernel's writer needs; nothing for plain JSON."""
        if self.registry is None and not self._message:
            return {}
        return {
            "format": self.name,
            "registry": None if self.registry is None else self.registry.to_json(),
            **{name: self.own.get(name) for name in (*_OF_SUBJECT, "avro_schema")},
            **self._message,
        }
