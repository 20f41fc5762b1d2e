"""The program in docs/jdbc.md does what the page says."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import jvm
from headgate.connectors.log.files import Record, TopicFiles
from headgate.runtime.run import run
from tests.jdbc.server import PASSWORD, USER, Server


def jvm_object(spark: SparkSession, name: str) -> Any:
    found: Any = spark._jvm
    for part in f"{jvm.PACKAGE}.{name}".split("."):
        found = getattr(found, part)
    return found


def plain(text: str) -> str:
    return " ".join(text.split())


def plain_records(server: Server, table: str, order: str) -> list[dict[str, Any]]:
    """The rows of a table, its decimal numbers as JSON has them."""
    rows: list[dict[str, Any]] = json.loads(
        json.dumps(server.records(table, [order]), default=float)
    )
    return rows


PAGE = (Path(__file__).parents[2] / "docs" / "jdbc.md").read_text()


def test_the_program_of_the_page_fills_its_tables(
    spark: SparkSession, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.S | re.M)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "jdbc.md", "exec", dont_inherit=True), module.__dict__)
    # the notes may be made by hand, as the page says, by a user who may
    of_postgres, of_mysql = re.findall(r"^```sql\n(.*?)^```", PAGE, re.S | re.M)
    if server.product == "postgresql":
        notes, dialect, query = of_postgres, "PostgresNotes", "?currentSchema=page"
        server.sql("CREATE SCHEMA page", f"SET search_path = page; {notes}")
        url = server.url
    else:
        notes, dialect = of_mysql, "MySqlNotes"
        query = "?allowPublicKeyRetrieval=true" if server.product == "mysql" else ""
        server.sql("USE page", notes)
        url = server.url.removesuffix("shop") + "page"
    topic = TopicFiles(tmp_path / "data" / "orders")
    topic.create(2)
    made = [(5, "a", 1.5), (7, "b", 2), (9, "a", -1.5), (11, "c", 0.01)]
    sent = [{"id": id, "user": user, "price": price} for id, user, price in made]
    params = {"db": f"{url}{query}", "db_user": USER, "db_password": PASSWORD}
    for part in (sent[:2], sent[2:]):
        topic.append([Record(json.dumps(row)) for row in part])
        outcome = run(module.shop, params=params, home="home", bounded=True, spark=spark)
        assert outcome.error is None, outcome.error
    assert plain_records(server, "page.orders", "id") == sent
    totals = plain_records(server, "page.totals", '"user"')
    assert totals == [{"user": "b", "total": 2}, {"user": "c", "total": 0.01}]
    assert server.rows("SELECT count(*) FROM page.headgate_batches") != [("0",)]
    made_by_sinks = jvm_object(spark, f"sinks.jdbc.{dialect}").definitions()
    texts = [made_by_sinks.apply(n).replace("IF NOT EXISTS ", "") for n in range(2)]
    assert plain("; ".join(texts)) + ";" == plain(notes)
