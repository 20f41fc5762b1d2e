"""State written anew: other partitions, other columns, empty; and queries that go on from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate import jvm
from headgate.base.errors import RefusedError
from tests.kernel.state_support import OPERATOR, STEP, Query, files_below, users_job

SPARSE = [k * k * 7 + 3 for k in range(400)]  # far apart: a wrong base shows as missing keys


def user(id: int, name: str) -> dict[str, Any]:
    return {"id": id, "name": name}


def filled(spark: SparkSession, root: Path, partitions: int = 2, **job: Any) -> Query:
    """A table after three batches: 400 rows, every third changed, every seventh deleted."""
    query = Query(spark, users_job(**job), root, root / "spark", partitions)
    query.send("users", *[user(k, f"first {k}") for k in SPARSE]).run()
    query.send("users", *[user(k, f"second {k}") for k in SPARSE[::3]]).run()
    return query.delete(*SPARSE[::7]).run()


def truth() -> dict[int, Any]:
    rows = {k: user(k, f"first {k}") for k in SPARSE}
    rows |= {k: user(k, f"second {k}") for k in SPARSE[::3]}
    for k in SPARSE[::7]:
        del rows[k]
    return dict(sorted(rows.items()))


def go_on(query: Query, expected: dict[int, Any], extra: dict[str, Any] | None = None) -> None:
    """Several batches and a restart after each: every result is that of `expected`."""
    added = extra or {}
    before = len(query.rows())
    for round in range(4):
        key, changed = 1_000_003 + round, SPARSE[5 + 7 * round + 1]
        query.send("users", user(key, "new") | added, user(changed, f"again {round}") | added)
        query.run()
        expected[key] = user(key, "new") | added
        expected[changed] = user(changed, f"again {round}") | added
        asked = [*SPARSE, key, 11]
        query.send("orders", *[{"id": n, "user_id": k} for n, k in enumerate(asked)]).run()
        found = {r["user_id"]: r["user"] for r in query.rows()[before:]}
        assert found == {k: expected.get(k) for k in asked}
        before = len(query.rows())
    assert query.users() == dict(sorted(expected.items()))


@pytest.mark.parametrize(("old", "new"), [(2, 3), (3, 1)])
def test_other_partitions(spark: SparkSession, tmp_path: Path, old: int, new: int) -> None:
    query = filled(spark, tmp_path, partitions=old)
    before = files_below(query.folder)
    made = query.rewritten(tmp_path / "made", partitions=new)
    assert files_below(query.folder) == before
    assert len(made.ids()) == new
    assert made.users() == truth()
    placed = {(r.key["key0"], r.partition) for r in made.state()}
    keys = spark.createDataFrame([(k,) for k in truth()], "k BIGINT")
    asked = keys.select("k", F.expr(f"pmod(hash(k), {new})").cast("int"))
    assert placed == {(r[0], r[1]) for r in asked.collect()}
    go_on(made, truth())


def test_an_earlier_batch(spark: SparkSession, tmp_path: Path) -> None:
    query = filled(spark, tmp_path)
    made = query.rewritten(tmp_path / "made", partitions=3, batch=query.batch - 1)
    assert made.users() == query.users(query.batch - 1)
    assert set(made.users()) == set(SPARSE)


def test_a_new_column_is_null_and_a_dropped_one_gone(spark: SparkSession, tmp_path: Path) -> None:
    query = filled(spark, tmp_path)
    job = users_job("id BIGINT, age INT, name STRING")
    made = query.rewritten(tmp_path / "made", job=job)
    expected = {k: {"id": k, "age": None, "name": u["name"]} for k, u in truth().items()}
    assert made.users() == expected
    go_on(made, dict(expected), extra={"age": 7})

    narrow = made.rewritten(tmp_path / "narrow", job=users_job("id BIGINT, age INT"), partitions=3)
    assert narrow.users() == {k: {"id": k, "age": u["age"]} for k, u in made.users().items()}


def test_columns_inside_structs_arrays_and_maps(spark: SparkSession, tmp_path: Path) -> None:
    before = (
        "id BIGINT, at STRUCT<city: STRING, zip: STRING>, tags ARRAY<STRUCT<t: STRING>>,"
        " marks MAP<STRING, STRUCT<n: INT, x: INT>>"
    )
    after = (
        "id BIGINT, at STRUCT<street: STRING, city: STRING>,"
        " tags ARRAY<STRUCT<w: DOUBLE, t: STRING>>, marks MAP<STRING, STRUCT<n: INT>>"
    )
    rows = [
        {
            "id": k,
            "at": {"city": f"c{k}", "zip": "z"} if k % 2 else None,
            "tags": [{"t": f"t{i}"} if i else None for i in range(k % 4)],
            "marks": {"a": {"n": k % 100, "x": 1}, "b": None},
        }
        for k in SPARSE
    ]
    query = Query(spark, users_job(before), tmp_path, tmp_path / "spark", 2)
    query.send("users", *rows[:200]).run().send("users", *rows[200:]).run()
    made = query.rewritten(tmp_path / "made", job=users_job(after), partitions=3)
    assert made.users() == {
        k: {
            "id": k,
            "at": {"street": None, "city": f"c{k}"} if k % 2 else None,
            "tags": [{"w": None, "t": f"t{i}"} if i else None for i in range(k % 4)],
            "marks": {"a": {"n": k % 100}, "b": None},
        }
        for k in SPARSE
    }


def test_changed_types_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    query = filled(spark, tmp_path)
    with pytest.raises(RefusedError, match=r"column row\.name of the state was string and is int"):
        query.rewritten(tmp_path / "made", job=users_job("id BIGINT, name INT"))
    assert not list((tmp_path / "made").glob("state/*"))
    text = users_job("id STRING, name STRING", on="CAST(user_id AS STRING)")
    with pytest.raises(RefusedError, match=r"key of the state was \(bigint\) and is \(string\)"):
        query.rewritten(tmp_path / "other", job=text)


def test_a_new_step_begins_empty(spark: SparkSession, tmp_path: Path) -> None:
    query = filled(spark, tmp_path)
    made = query.rewritten(tmp_path / "made", partitions=3, empty=True)
    assert made.users() == {}
    go_on(made, {})


def test_files_of_an_attempt_that_failed_do_no_harm(spark: SparkSession, tmp_path: Path) -> None:
    """A task that is tried again leaves files of the same version under another unique id."""
    query = filled(spark, tmp_path)
    target, at = tmp_path / "made", query.batch
    jvm.rewrite_state(
        spark, source=str(query.folder), source_version=at, source_ids=query.ids(at - 1),
        operator_id=OPERATOR, old=query.layouts, new=query.layouts, target=str(target),
        target_version=at + 1, partitions=3, step=STEP,
    )  # fmt: skip
    made = query.rewritten(target, partitions=3)
    assert len(list((target / "state").rglob(f"{at + 1}_*.zip"))) == 2 * 3
    assert made.users() == truth()
    go_on(made, truth())


@pytest.mark.parametrize("new", [1, 3])
def test_waiting_rows(spark: SparkSession, tmp_path: Path, new: int) -> None:
    job = users_job(missing=hg.Wait("1 hour"))
    query = Query(spark, job, tmp_path, tmp_path / "spark", 2)
    query.send("users", *[user(k, f"first {k}") for k in SPARSE]).run()
    orders = [{"id": n, "user_id": k + 1} for n, k in enumerate(SPARSE)]  # k + 1 is no user yet
    query.send("orders", *orders[:200]).run()
    query.send("orders", *orders[200:]).run()
    wider = users_job(missing=hg.Wait("1 hour"), columns=", note STRING")
    made = query.rewritten(tmp_path / "made", job=wider, partitions=new)
    waiting = {(r.key["key0"], r.value["id"], r.value["note"]) for r in made.state("waiting")}
    assert waiting == {(o["user_id"], o["id"], None) for o in orders}
    by_key = {(r.key["key0"], r.key["deadline"], r.key["number"]) for r in made.state("waiting")}
    by_time = {(r.key["key0"], r.key["deadline"], r.key["number"]) for r in made.state("deadlines")}
    assert by_key == by_time
    assert len(by_key) == len(orders)

    # the row comes for half of them, now and after a restart; the others' time runs out
    came = [o for o in orders if o["id"] % 2]
    made.send("users", *[user(o["user_id"], f"late {o['user_id']}") for o in came[:100]]).run()
    made.send("users", *[user(o["user_id"], f"late {o['user_id']}") for o in came[100:]]).run()
    found = {r["id"]: r["user"] for r in made.rows()}
    assert found == {o["id"]: user(o["user_id"], f"late {o['user_id']}") for o in came}
    assert made.rows("late") == []
    spark.conf.set(jvm.CLOCK_OFFSET, str(2 * 3600 * 1000))
    try:
        made.run()
    finally:
        spark.conf.unset(jvm.CLOCK_OFFSET)
    assert {r["id"] for r in made.rows("late")} == {o["id"] for o in orders if not o["id"] % 2}
    assert made.state("waiting") == []
    assert made.state("deadlines") == []


def test_stores_are_matched_by_name(spark: SparkSession, tmp_path: Path) -> None:
    query = filled(spark, tmp_path)
    waits = query.rewritten(tmp_path / "waits", job=users_job(missing=hg.Wait("1 hour")))
    assert waits.users() == truth()
    assert waits.state("waiting") == []
    back = waits.rewritten(tmp_path / "back", job=users_job(), partitions=3)
    assert back.users() == truth()


def test_only_complete_snapshots_are_written_at_the_version(
    spark: SparkSession, tmp_path: Path
) -> None:
    query = filled(spark, tmp_path)
    made = query.rewritten(tmp_path / "made", partitions=3)
    state = made.folder / "state" / str(OPERATOR)
    for partition, (id,) in enumerate(made.ids()):
        names = {p.name for p in (state / str(partition)).iterdir() if not p.name.startswith(".")}
        snapshot = f"{made.batch + 1}_{id}.zip"
        assert names - {"_metadata", "SSTs"} == {snapshot, f"{snapshot}.crc"}
    metadata = json.loads((state / "_metadata" / "metadata").read_text().split("\n")[1])
    assert metadata["operatorInfo"] == {"operatorId": OPERATOR, "operatorName": f"headgate:{STEP}"}
    assert [s["numPartitions"] for s in metadata["stateStoreInfo"]] == [3]
    # Spark's own reader finds its way, too
    reader = spark.read.format("statestore").option("operatorId", OPERATOR)
    rows = reader.load(str(made.folder)).select("key.key0", "value.row.name").collect()
    assert {r[0]: r[1] for r in rows} == {k: u["name"] for k, u in truth().items()}
