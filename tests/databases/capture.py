"""What Debezium does, small: PostgreSQL's log of changes as envelopes.

The plugin `pgoutput` is a part of every PostgreSQL, and the one that Debezium reads. Its messages
are those of "Logical Replication Message Formats" in PostgreSQL's manual, version 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from headgate.connectors.log.files import Record
from tests.databases.postgres import Postgres

_SLOT = "headgate"
_NUMBERS = (20, 21, 23)  # the types bigint, smallint and integer
_TOLD = {"type": "struct", "fields": []}


class Column(NamedTuple):
    name: str
    type: int


class Message:
    """Reads the parts of a message of the log."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def letter(self) -> str:
        return self.take(1).decode()

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def text(self) -> str:
        end = self._data.index(0, self._at)
        return self.take(end + 1 - self._at)[:-1].decode()

    def row(self, columns: list[Column]) -> dict[str, Any]:
        assert self.number(2) == len(columns)
        return {column.name: self._value(column) for column in columns}

    def _value(self, column: Column) -> Any:
        kind = self.letter()
        if kind == "n":
            return None
        assert kind == "t", kind
        text = self.take(self.number(4)).decode()
        return int(text) if column.type in _NUMBERS else text


class Capture:
    """Follows one table from now on; `key` are the columns of its primary key."""

    def __init__(self, postgres: Postgres, table: str, key: tuple[str, ...]) -> None:
        self._postgres, self._table, self._key = postgres, table, key
        self._relations: dict[int, list[Column]] = {}
        postgres.sql(
            f"CREATE PUBLICATION {_SLOT} FOR TABLE {table}",
            f"SELECT pg_create_logical_replication_slot('{_SLOT}', 'pgoutput')",
        )

    def close(self) -> None:
        self._postgres.sql(
            f"SELECT pg_drop_replication_slot('{_SLOT}')", f"DROP PUBLICATION {_SLOT}"
        )

    def snapshot(self) -> list[Record]:
        """The rows that are there, as Debezium's first reads."""
        found = self._postgres.rows(f"SELECT * FROM {self._table}")
        return [self._record("r", None, _texts(row), bare=True) for row in found]

    def changes(self, *, bare: bool) -> list[Record]:
        """The changes since the last call in their order; `bare` are those without a schema."""
        said = self._postgres.sql(
            "SELECT encode(data, 'hex') FROM pg_logical_slot_get_binary_changes("
            f"'{_SLOT}', NULL, NULL, 'proto_version', '1', 'publication_names', '{_SLOT}')"
        )
        messages = [Message(bytes.fromhex(line)) for line in said.split()]
        return [record for message in messages for record in self._records(message, bare)]

    def _records(self, message: Message, bare: bool) -> Iterator[Record]:
        kind = message.letter()
        if kind == "R":
            relation, _, _, _ = message.number(4), message.text(), message.text(), message.take(1)
            self._relations[relation] = [_column(message) for _ in range(message.number(2))]
        elif kind == "T":
            yield Record(json.dumps({"op": "t", "before": None, "after": None}), None)
        elif kind in "IUD":
            columns = self._relations[message.number(4)]
            old, form = None, message.letter()
            if form in "KO":
                old, form = message.row(columns), message.letter() if kind == "U" else ""
            new = message.row(columns) if form == "N" else None
            yield from self._changed(kind, old, new, bare)

    def _changed(
        self, kind: str, old: dict[str, Any] | None, new: dict[str, Any] | None, bare: bool
    ) -> Iterator[Record]:
        moved = old and new and any(old[name] != new[name] for name in self._key)
        if new is None or moved:  # another key is another row
            assert old is not None
            record = self._record("d", old, None, bare)
            yield from (record, Record(None, record.key))
        if new is not None:
            created = kind == "I" or moved
            yield self._record("c" if created else "u", None if created else old, new, bare)

    def _record(self, op: str, before: Any, after: Mapping[str, Any] | None, bare: bool) -> Record:
        key = {name: (after or before)[name] for name in self._key}
        source = {"connector": "postgresql", "table": self._table, "snapshot": op == "r"}
        envelope = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}
        if bare:
            return Record(json.dumps(envelope), json.dumps(key))
        return Record(
            json.dumps({"schema": _TOLD, "payload": envelope}),
            json.dumps({"schema": _TOLD, "payload": key}),
        )


def _column(message: Message) -> Column:
    message.take(1)
    column = Column(message.text(), message.number(4))
    message.take(4)
    return column


def _texts(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a snapshot as the log's changes have it: numbers with a point are texts."""
    return {
        name: value if value is None or isinstance(value, int | str) else json.dumps(value)
        for name, value in row.items()
    }
