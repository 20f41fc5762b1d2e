"""Dead letters as a topic holds them, and the records that give them to their step again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.base.secrets import redact
from headgate.connectors.records import Record
from headgate.connectors.topic_client import Offset, TopicRecord

HEADERS = "__headgate.errors."
"""How the names of a letter's headers begin (after Kafka Streams' `__streams.errors.`)."""
JOB, STEP, OUTPUT = "job", "step", "output"
ERROR, MESSAGE, TIME = "exception", "message", "time"
PLACE = ("topic", "partition", "offset", "timestamp")
"""Where the record is from which the row was made."""
EVENT_TIME = "event_time"

REPLAYS = "replays"
"""What the config of a step has that takes letters again: the job, step and output in them."""
REPLAY = (
    "job STRING, step STRING, output STRING, topic STRING, `partition` INT, `offset` BIGINT,"
    " `timestamp` STRING, event_time STRING, key STRING, value STRING"
)
"""What the job reads of a record of the replay topic, in JSON."""


def replay_address(address: str) -> str:
    """The topic through which the letters of another go to their step again.

    >>> replay_address("log:data/dlq")
    'log:data/dlq.replay'
    """
    return f"{address}.replay"


def place_of(address: str) -> str:
    """A topic's address in the one form in which two are compared.

    >>> place_of("log:data/dlq") == place_of("log:./data/../data/dlq")
    True
    """
    if address.startswith("log:"):
        return f"log:{os.path.abspath(address.removeprefix('log:'))}"
    return redact(address)


def can_replay(address: str) -> bool:
    """Whether letters of a topic can be replayed: Pulsar has nothing to do it exactly once with."""
    return address.startswith(("log:", "kafka:"))


@dataclass(frozen=True)
class Letter:
    """One dead letter.

    >>> record = TopicRecord(0, 7, 0, "1", "{", (("__headgate.errors.step", "orders"),))
    >>> Letter.of(record).step, Letter.of(record).id
    ('orders', '0/7')
    """

    partition: int
    offset: Offset
    key: str | None
    value: str | None
    headers: Mapping[str, str]
    """Without the beginning of their names."""

    @staticmethod
    def of(record: TopicRecord) -> Letter | None:
        """The letter that a record is; None if it is none."""
        headers, key, value = _headers(record.headers), record.key, record.value
        if not headers:  # a log has no headers: they are beside the value
            data = _object(record.value)
            given = data.get("headers")
            headers = _headers(given.items()) if isinstance(given, dict) else {}
            key, value = data.get("key"), data.get("value")
        if STEP not in headers:
            return None
        return Letter(record.partition, record.offset, key, value, headers)

    @property
    def id(self) -> str:
        """Its place in its topic."""
        return f"{self.partition}/{self.offset}"

    @property
    def mark(self) -> str:
        """What tells it from all others, also of a topic that was deleted and made again."""
        return f"{self.id} {self.headers.get(TIME, '')}"

    @property
    def job(self) -> str:
        """The job that wrote it, by the name in its code."""
        return self.headers.get(JOB, "")

    @property
    def step(self) -> str:
        """The step at which it was lost."""
        return self.headers[STEP]

    @property
    def output(self) -> str:
        """The side output that nobody reads."""
        return self.headers.get(OUTPUT, "")

    def row(self) -> dict[str, Any]:
        """What conditions of `headgate replay --where` see."""
        got = self.headers.get
        return {
            "id": self.id, "job": self.job, "step": self.step, "output": self.output,
            "exception": got(ERROR), "message": got(MESSAGE), "time": got(TIME),
            "topic": got("topic"), "partition": _number(got("partition")),
            "offset": _number(got("offset")), "timestamp": got("timestamp"),
            "event_time": got(EVENT_TIME), "key": self.key, "value": self.value,
        }  # fmt: skip

    def replayed(self, replay: str) -> Record:
        """The record that gives the letter to its step again."""
        row = self.row()
        data = {name: row[name] for name in (JOB, STEP, OUTPUT, *PLACE, EVENT_TIME, "key", "value")}
        known = {name: value for name, value in data.items() if value is not None}
        return Record(json.dumps({"letter": self.mark, "replay": replay, **known}))


@dataclass(frozen=True)
class Replayed:
    """What a record of the replay topic says of the letter that it was made of."""

    job: str
    letter: str
    replay: str

    @staticmethod
    def of(record: TopicRecord) -> Replayed | None:
        """None if the record is none of ours."""
        data = _object(record.value)
        found = [data.get(name) for name in ("job", "letter", "replay")]
        return Replayed(*map(str, found)) if all(isinstance(f, str) for f in found) else None


def _headers(pairs: Any) -> dict[str, str]:
    return {
        str(name).removeprefix(HEADERS): value
        for name, value in pairs
        if str(name).startswith(HEADERS) and isinstance(value, str)
    }


def _object(text: str | None) -> dict[str, Any]:
    try:
        data = json.loads(text or "")
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
