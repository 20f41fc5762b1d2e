"""The servers of databases that tests of tables run against, with what they ask of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headgate.testing import PostgresServer
from tests.jdbc.mysql_server import MySqlServer

PRODUCTS = ("postgresql", "mariadb", "mysql")
FEW = PRODUCTS[:2]
"""For what does not depend on which of MySQL and MariaDB it is."""
USER = PostgresServer.user
PASSWORD = PostgresServer.password


class Postgres(PostgresServer):
    """A server that runs until it is closed."""

    product = "postgresql"
    in_transaction = "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"

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


Server = Postgres | MySqlServer


def started(product: str) -> Server:
    """A server of a product, with an empty database."""
    return Postgres() if product == "postgresql" else MySqlServer(product)
