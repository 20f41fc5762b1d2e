"""The PostgreSQL server of the headgate plugin, with what the tests of tables ask of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headgate.testing import PostgresServer

USER = PostgresServer.user
PASSWORD = PostgresServer.password


class Postgres(PostgresServer):
    """A server that runs until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.__enter__()

    @property
    def login(self) -> dict[str, str]:
        return {"user": USER, "password": PASSWORD}

    def records(self, table: str, order: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The rows of a table by the names of its columns, as JSON has them."""
        by = f" ORDER BY {', '.join(order)}" if order else ""
        return [
            json.loads(row[0] or "") for row in self.rows(f"SELECT to_jsonb(t) FROM {table} t{by}")
        ]
