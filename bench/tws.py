"""Owns the same two lookups in Spark's own transformWithState, in Python, one Row at a time.

Its rows pass through Python one by one, so it gets fewer orders; the figure is orders a second, and
nothing is scaled but the count. As for the other engines, the tables are loaded before the orders
come, and only the orders are timed, in a query that is already running.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.data import TABLES, first_orders
from bench.process import progress_printer, run_measured
from bench.result import OUTPUTS, Result, result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "transformWithState, Python"

USER = (
    "id BIGINT, firstName STRING, lastName STRING, emailAddress STRING, "
    "createdAt BIGINT, deletedAt BIGINT, mergedAt BIGINT, parentUserId BIGINT"
)
ITEM = (
    "id BIGINT, createdAt BIGINT, adjective STRING, category STRING, modifier STRING, "
    "name STRING, price DOUBLE"
)
ORDER = (
    "invoiceId BIGINT, lineItemId BIGINT, userId BIGINT, itemId BIGINT, itemName STRING, "
    "itemCategory STRING, price DOUBLE, createdAt BIGINT, paidAt BIGINT"
)

_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}


def run_tws(data_dir: Path, out_dir: Path, orders: int, *, all_users: bool = True) -> Result:
    """Run the lookups over the first orders; the rows are in out_dir when it returns.

    Without all_users only the users that those orders name are loaded: the rows are the same, and
    minutes of loading that nothing measures are spared.

    >>> run_tws(data, out, 100_000).orders_per_second  # doctest: +SKIP
    5000.0
    """
    shutil.rmtree(out_dir, ignore_errors=True)
    work = out_dir / "_tws"
    _input(data_dir, work / "input", orders, all_users=all_users)
    began = time.time()
    ran = run_measured(
        [sys.executable, "-m", "bench.tws", str(out_dir), str(began)],
        log=work / "stderr.log",
        env={
            "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
            "PYSPARK_PYTHON": sys.executable,
        },
        on_line=progress_printer(NAME, orders),
    )
    found = next(line for line in reversed(ran.lines) if line.startswith("RESULT "))
    phases: dict[str, float] = json.loads(found.removeprefix("RESULT "))
    for name in ("input", "checkpoint", "local"):
        shutil.rmtree(work / name, ignore_errors=True)
    return result(NAME, orders=orders, ran=ran, phases=phases)


def _input(data_dir: Path, target: Path, orders: int, *, all_users: bool) -> None:
    """Lay out the input as flat folders; the orders wait beside theirs until they are wanted."""
    for topic in ("orders", "orders_waiting", *TABLES):
        (target / topic).mkdir(parents=True)
    lines = chain.from_iterable(map(_lines, first_orders(data_dir, orders)))
    wanted = set()
    with (
        open(target / "orders_waiting" / "0.jsonl", "wb") as even,
        open(target / "orders_waiting" / "1.jsonl", "wb") as odd,
    ):
        for number, line in enumerate(islice(lines, orders)):
            (odd if number % 2 else even).write(line)
            wanted.add(json.loads(line)["userId"])
    for table in TABLES:
        for number, file in enumerate(sorted((data_dir / table).glob("partition-*/*.jsonl"))):
            copy = target / table / f"{number}.jsonl"
            if table == "items" or all_users:
                shutil.copyfile(file, copy)
                continue
            with open(copy, "wb") as out:
                out.writelines(x for x in _lines(file) if json.loads(x)["id"] in wanted)


def _lines(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from file


# ------------------------------------------------------------- in the process that is measured


def _lookup(
    left: DataFrame, key: str, table: DataFrame, left_columns: list[str], column: str, ddl: str
) -> DataFrame:
    """Rows of left, keyed by key, with the table's row of that key in a new column, or null."""
    from pyspark.sql import Row
    from pyspark.sql import functions as F
    from pyspark.sql.streaming.stateful_processor import (
        StatefulProcessor,
        StatefulProcessorHandle,
    )
    from pyspark.sql.types import StructField, StructType

    width = len(left_columns)
    row_type = table.schema["v"].dataType
    assert isinstance(row_type, StructType)
    # Structs inside a row come as dictionaries, and must go out with their names too.
    out_row, names = Row(*left_columns, column), row_type.names

    class Lookup(StatefulProcessor):
        """Keeps the key's row, and gives it to every left row that comes."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            self._row = handle.getValueState("row", ddl)

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            found: Any = None
            read = False
            for row in rows:
                table_row = row[width + 1]
                if table_row is not None:
                    self._row.update(tuple(table_row.values()))
                    continue
                if not read:
                    state, read = self._row.get(), True
                    found = None if state is None else dict(zip(names, state, strict=True))
                yield out_row(*row[1 : width + 1], found)

        def close(self) -> None:
            pass

    kept = [left.schema[name] for name in left_columns]
    output = StructType([*kept, StructField(column, row_type)])
    probe = left.select(
        F.expr(key).alias("__key"), *left_columns, F.lit(None).cast(row_type).alias(column)
    )
    build = table.select(
        F.col("v.id").alias("__key"),
        *[F.lit(None).cast(field.dataType).alias(field.name) for field in kept],
        F.col("v").alias(column),
    )
    grouped = probe.unionByName(build).groupBy("__key")
    return grouped.transformWithState(Lookup(), output, "Append", "None")


def _source(spark: SparkSession, folder: Path, ddl: str) -> DataFrame:
    from pyspark.sql import functions as F

    return spark.readStream.text(str(folder)).select(F.from_json("value", ddl).alias("v"))


def _rows(spark: SparkSession, folder: Path) -> DataFrame:
    """Every order as JSON, with the name of the output it belongs to.

    Rows without a user go through the second lookup too and come out as they went in: to use the
    first lookup's result twice would run it twice.
    """
    orders = _source(spark, folder / "orders", ORDER).withColumnRenamed("v", "o")
    users = _source(spark, folder / "users", USER)
    items = _source(spark, folder / "items", ITEM)
    with_user = _lookup(orders, "o.userId", users, ["o"], "user", USER)
    with_item = _lookup(with_user, "o.itemId", items, ["o", "user"], "item", ITEM)
    return with_item.selectExpr(
        "CASE WHEN user IS NULL THEN 'missing_users' WHEN item IS NULL THEN 'missing_items' "
        "ELSE 'enriched' END AS sink",
        "CASE WHEN user IS NULL THEN to_json(o) "
        "WHEN item IS NULL THEN to_json(struct(o.*, user)) "
        "ELSE to_json(struct(o.invoiceId, o.lineItemId, user, item, o.createdAt, o.paidAt)) "
        "END AS value",
    )


def _main(out_dir: Path, began: float) -> None:
    from pyspark.sql import SparkSession

    work = out_dir / "_tws"
    builder = SparkSession.builder.master("local[2]").appName("lookup")
    for name, value in {**_CONF, "spark.local.dir": str(work / "local")}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    started = time.time()
    query = (
        _rows(spark, work / "input")
        .writeStream.format("text")
        .partitionBy("sink")
        .option("checkpointLocation", str(work / "checkpoint"))
        .outputMode("append")
        .start(str(work / "output"))
    )
    query.processAllAvailable()
    loaded = time.time()
    print("PROGRESS orders 0", flush=True)
    for file in sorted((work / "input" / "orders_waiting").iterdir()):
        file.rename(work / "input" / "orders" / file.name)
    query.processAllAvailable()
    done = time.time()
    query.stop()
    spark.stop()
    for name in OUTPUTS:
        written = work / "output" / f"sink={name}"
        if written.exists():
            written.rename(out_dir / name)
    phases = {"start": started - began, "tables": loaded - started, "orders": done - loaded}
    print("RESULT " + json.dumps(phases), flush=True)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), float(sys.argv[2]))
