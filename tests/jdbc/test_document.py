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
from tests.jdbc.server import PASSWORD, USER, Postgres


def jvm_object(spark: SparkSession, name: str) -> Any:
    found: Any = spark._jvm
    for part in f"{jvm.PACKAGE}.{name}".split("."):
        found = getattr(found, part)
    return found


def plain(text: str) -> str:
    return " ".join(text.split())


PAGE = (Path(__file__).parents[2] / "docs" / "jdbc.md").read_text()


def test_the_program_of_the_page_fills_its_tables(
    spark: SparkSession, tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.S | re.M)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "jdbc.md", "exec", dont_inherit=True), module.__dict__)
    # the notes may be made by hand, as the page says, by a user who may
    (notes,) = re.findall(r"^```sql\n(.*?)^```", PAGE, re.S | re.M)
    postgres.sql("CREATE SCHEMA page", f"SET search_path = page; {notes}")
    topic = TopicFiles(tmp_path / "data" / "orders")
    topic.create(2)
    made = [(5, "a", 1.5), (7, "b", 2), (9, "a", -1.5), (11, "c", 0.01)]
    sent = [{"id": id, "user": user, "price": price} for id, user, price in made]
    params = {"db": f"{postgres.url}?currentSchema=page", "db_user": USER, "db_password": PASSWORD}
    for part in (sent[:2], sent[2:]):
        topic.append([Record(json.dumps(row)) for row in part])
        outcome = run(module.shop, params=params, home="home", bounded=True, spark=spark)
        assert outcome.error is None, outcome.error
    assert postgres.records("page.orders", ["id"]) == sent
    totals = postgres.records("page.totals", ['"user"'])
    assert totals == [{"user": "b", "total": 2}, {"user": "c", "total": 0.01}]
    assert postgres.rows("SELECT count(*) FROM page.headgate_batches") != [("0",)]
    made_by_sinks = jvm_object(spark, "sinks.jdbc.Bookkeeping").Definitions()
    texts = [made_by_sinks.apply(n).replace("IF NOT EXISTS ", "") for n in range(2)]
    assert plain("; ".join(texts)) + ";" == plain(notes)
