"""Upgrades by name: steps and sources added, removed, swapped, renamed, with other columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headgate as hg
from headgate.base.errors import ExitCode, RefusedError
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
Body = Callable[[hg.Job], None]

ORDER = "id BIGINT, user_id BIGINT, item_id STRING, shop_id INT"
SCHEMAS = {
    "users": "id BIGINT, name STRING",
    "items": "id STRING, price DOUBLE",
    "shops": "id INT, town STRING",
}
ON = {"users": "user_id", "items": "item_id", "shops": "shop_id"}


def job_of(*tables: str, **changes: Any) -> hg.JobDef:
    """A job that looks orders up in these tables, in this order."""
    schemas = {**SCHEMAS, **changes.get("schemas", {})}
    names = changes.get("names", {})

    @hg.job("shop", checkpoints=hg.Checkpoints(retain=20))
    def shop(job: hg.Job) -> None:
        stream: hg.Stream = job.source("orders", hg.topic("log:orders", schema=ORDER))
        for extra in changes.get("sources", ()):
            stream = stream.union(job.source(extra, hg.topic(f"log:{extra}", schema=ORDER)))
        for name in tables:
            table = job.table(name, hg.topic(f"log:{name}", schema=schemas[name]), key="id")
            step = names.get(name, f"{name}_lookup")
            on = changes.get("on", {}).get(name, ON[name])
            stream = stream.lookup(step, table, on=on, into=name)
        stream.sink("out", hg.topic("log:out"))

    return shop


ROWS = {
    "users": [{"id": k, "name": f"u{k}"} for k in range(0, 400, 13)],
    "items": [{"id": f"i{k}", "price": k / 4} for k in range(0, 60, 7)],
    "shops": [{"id": k, "town": f"t{k}"} for k in range(0, 20, 3)],
}
FOUND = {name: {row["id"]: row for row in rows} for name, rows in ROWS.items()}


def orders(first: int, count: int = 60) -> list[dict[str, Any]]:
    return [
        {"id": n, "user_id": n % 400, "item_id": f"i{n % 60}", "shop_id": n % 20}
        for n in range(first, first + count)
    ]


def looked_up(rows: list[dict[str, Any]], *tables: str) -> list[dict[str, Any]]:
    return [{**row, **{t: FOUND[t].get(row[ON[t]]) for t in tables}} for row in rows]


def out(t: JobDriver) -> list[dict[str, Any]]:
    return sorted(t.rows("out"), key=lambda row: row["id"])


def started(make: Make, *tables: str) -> JobDriver:
    """A job that has read its tables and some orders, with a savepoint called `before`."""
    t = make(job_of(*tables))
    for name in tables:
        t.send(name, *ROWS[name][::2])
    t.run()
    for name in tables:
        t.send(name, *ROWS[name][1::2])
    t.send("orders", *orders(0)).run()
    assert out(t) == looked_up(orders(0), *tables)
    t.savepoint("before")
    return t


def goes_on(t: JobDriver, *tables: str, first: int = 1000) -> None:
    """Orders that come now find every table row, though none is sent again."""
    t.send("orders", *orders(first)).run()
    assert out(t) == looked_up(orders(first), *tables)


@pytest.mark.parametrize(
    "tables",
    [("shops", "users", "items"), ("users", "shops", "items"), ("users", "items", "shops")],
    ids=["before", "between", "after"],
)
def test_a_lookup_can_be_added(job_driver: Make, tables: tuple[str, ...]) -> None:
    t = started(job_driver, "users", "items")
    t.restore("sp:before", job=job_of(*tables), parallelism=3 if tables[0] == "users" else None)
    t.send("shops", *ROWS["shops"])
    goes_on(t, *tables)
    assert len(t.state("shops_lookup").all()) == len(ROWS["shops"])
    t.restore()  # and a restart finds the new step's state
    goes_on(t, *tables, first=2000)


def test_two_lookups_can_be_swapped_and_the_graph_change_alone_is_enough(job_driver: Make) -> None:
    t = started(job_driver, "users", "items")
    t.restore(job=job_of("items", "users"))
    t.send("orders", *orders(500)).run()
    assert out(t) == looked_up(orders(500), "items", "users")


def test_a_lookup_is_removed_only_when_its_loss_is_allowed(job_driver: Make) -> None:
    t = started(job_driver, "users", "items")
    with pytest.raises(RefusedError) as refused:
        t.restore("sp:before", job=job_of("users")).run()
    assert refused.value.exit_code == ExitCode.REFUSED
    told = str(refused.value)
    assert "state would be lost: items_lookup" in told
    assert "= users_lookup  state unchanged" in told
    assert "- items_lookup  state dropped" in told
    assert f"{len(ROWS['items'])} rows" in told
    t.restore("sp:before", allow_dropped_state=True)
    goes_on(t, "users")


def test_a_renamed_step_is_refused_with_the_plan(job_driver: Make) -> None:
    t = started(job_driver, "users", "items")
    renamed = job_of("users", "items", names={"items": "goods_lookup"})
    with pytest.raises(RefusedError, match=r"(?s)\+ goods_lookup.*be lost: items_lookup"):
        t.restore("sp:before", job=renamed).run()


def test_the_plan_counts_rows_that_wait_and_says_when_a_table_is_not_read_again(
    job_driver: Make,
) -> None:
    @hg.job("shop")
    def patient(job: hg.Job) -> None:
        orders = job.source("orders", hg.topic("log:orders", schema=ORDER))
        users = job.table("users", hg.topic("log:users", schema=SCHEMAS["users"]), key="id")
        found = orders.lookup("users_wait", users, on="user_id", missing=hg.Wait("1 hour"))
        found.sink("out", hg.topic("log:out"))

    t = job_driver(patient)
    t.send("users", *ROWS["users"]).send("orders", *orders(0)).run()
    found = len(out(t))
    assert 0 < found < 60
    assert len(t.state("users_wait", "waiting").all()) == 60 - found
    with pytest.raises(RefusedError) as refused:
        t.restore(job=job_of("users")).run()
    told = str(refused.value)
    assert f"state dropped, {60 - found} rows that wait in it" in told
    assert f"{len(ROWS['users']) + 60 - found} rows" in told
    assert "table users is not read again" in told


def test_a_source_can_be_added_and_removed(job_driver: Make) -> None:
    t = started(job_driver, "users")
    t.restore("sp:before", job=job_of("users", sources=["returns"]))
    t.send("returns", *orders(3000))
    t.send("orders", *orders(1000)).run()
    assert out(t) == looked_up(orders(1000) + orders(3000), "users")
    t.restore(job=job_of("users"))
    goes_on(t, "users", first=1500)


def test_a_table_gains_a_column_that_old_rows_have_not(job_driver: Make) -> None:
    t = started(job_driver, "users", "items")
    wider = {"users": "id BIGINT, name STRING, level INT"}
    t.restore("sp:before", job=job_of("users", "items", schemas=wider))
    t.send("users", {"id": 13, "name": "new", "level": 7})
    t.send("orders", *orders(1000)).run()
    expected = looked_up(orders(1000), "users", "items")
    for row in expected:
        if row["users"] is not None:
            row["users"] = {**row["users"], "level": None}
        if row["user_id"] == 13:
            row["users"] = {"id": 13, "name": "new", "level": 7}
    assert out(t) == expected
    state = {row["key"]["id"]: row["row"] for row in t.state("users_lookup").all()}
    assert len(state) == len(ROWS["users"])
    assert state[0] == {"id": 0, "name": "u0", "level": None}
    assert state[13] == {"id": 13, "name": "new", "level": 7}


def test_a_table_loses_a_column_only_when_that_is_allowed(job_driver: Make) -> None:
    t = started(job_driver, "users", "items")
    narrower = job_of("users", "items", schemas={"users": "id BIGINT"})
    with pytest.raises(RefusedError, match="state loses column name STRING"):
        t.restore("sp:before", job=narrower).run()
    t.restore("sp:before", allow_dropped_state=True)
    t.send("orders", *orders(1000)).run()
    users = {row["id"]: row["users"] for row in out(t)}
    assert users == {
        row["id"]: {"id": row["user_id"]} if row["user_id"] in FOUND["users"] else None
        for row in orders(1000)
    }


def test_a_key_of_another_type_is_refused_whatever_is_allowed(job_driver: Make) -> None:
    t = started(job_driver, "users")
    other = job_of(
        "users",
        schemas={"users": "id STRING, name STRING"},
        on={"users": "CAST(user_id AS STRING)"},
    )
    with pytest.raises(RefusedError, match="users_lookup: state does not fit: key"):
        t.restore("sp:before", job=other, allow_dropped_state=True).run()
