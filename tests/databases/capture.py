"""What Debezium does, small: PostgreSQL's log of changes as envelopes.

The plugin `test_decoding` comes with PostgreSQL. It writes a change as a line of text:
`table public.users: UPDATE: old-key: id[bigint]:1 new-tuple: id[bigint]:2 name[text]:'ann'`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from headgate.connectors.log.files import Record
from tests.databases.postgres import Postgres

_SLOT = "headgate"
_LINE = re.compile(r"table public\.(\w+): (INSERT|UPDATE|DELETE|TRUNCATE): (.*)", re.DOTALL)
_FIELD = re.compile(r"(\w+)\[([^\]]+)\]:('(?:[^']|'')*'|\S+)")
_NUMBERS = ("bigint", "integer", "smallint")


class Capture:
    """Follows one table from now on; `key` are the columns of its primary key."""

    def __init__(self, postgres: Postgres, table: str, key: tuple[str, ...]) -> None:
        self._postgres, self._table, self._key = postgres, table, key
        postgres.sql(f"SELECT pg_create_logical_replication_slot('{_SLOT}', 'test_decoding')")

    def close(self) -> None:
        self._postgres.sql(f"SELECT pg_drop_replication_slot('{_SLOT}')")

    def snapshot(self) -> list[Record]:
        """The rows that are there, as Debezium's first reads."""
        found = self._postgres.rows(f"SELECT * FROM {self._table}")
        return [self._record("r", None, _texts(row), bare=True) for row in found]

    def changes(self, *, bare: bool) -> list[Record]:
        """The changes since the last call in their order; `bare` are those without a schema."""
        said = self._postgres.sql(
            "SELECT encode(convert_to(data, 'UTF8'), 'hex') FROM "
            f"pg_logical_slot_get_changes('{_SLOT}', NULL, NULL, 'include-xids', '0')"
        )
        lines = [bytes.fromhex(line).decode() for line in said.split()]
        return [record for line in lines for record in self._records(line, bare)]

    def _records(self, line: str, bare: bool) -> Iterator[Record]:
        found = _LINE.fullmatch(line)
        if found is None or found[1] != self._table:
            return  # BEGIN, COMMIT, other tables
        kind, rest = found[2], found[3]
        old, new = {}, rest
        if rest.startswith("old-key: "):
            before, _, new = rest.removeprefix("old-key: ").partition(" new-tuple: ")
            old = _row(before)
        row = _row(new)
        if kind == "TRUNCATE":
            yield Record(json.dumps({"op": "t", "before": None, "after": None}), None)
        elif kind == "DELETE":
            yield from self._deleted(row, bare)
        elif old and any(old[name] != row[name] for name in self._key):
            yield from self._deleted(old, bare)  # another key is another row
            yield self._record("c", None, row, bare)
        else:
            yield self._record("c" if kind == "INSERT" else "u", old or None, row, bare)

    def _deleted(self, row: Mapping[str, Any], bare: bool) -> Iterator[Record]:
        record = self._record("d", row, None, bare)
        yield from (record, Record(None, record.key))

    def _record(self, op: str, before: Any, after: Mapping[str, Any] | None, bare: bool) -> Record:
        key = {name: (after or before)[name] for name in self._key}
        source = {"connector": "postgresql", "table": self._table, "snapshot": op == "r"}
        envelope = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}
        told = {"type": "struct", "fields": []}
        if bare:
            return Record(json.dumps(envelope), json.dumps(key))
        return Record(
            json.dumps({"schema": told, "payload": envelope}),
            json.dumps({"schema": told, "payload": key}),
        )


def _row(text: str) -> dict[str, Any]:
    return {name: _value(kind, value) for name, kind, value in _FIELD.findall(text)}


def _value(kind: str, text: str) -> Any:
    if text == "null":
        return None
    plain = text[1:-1].replace("''", "'") if text.startswith("'") else text
    return int(plain) if kind in _NUMBERS else plain


def _texts(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a snapshot as the log's changes have it: numbers with a point are texts."""
    return {
        name: value if value is None or isinstance(value, int | str) else json.dumps(value)
        for name, value in row.items()
    }
