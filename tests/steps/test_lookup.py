"""Lookups through the public API, on the real kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import headgate as hg
from headgate.testing import Deleted, JobDriver

Make = Callable[..., JobDriver]
USER = "id BIGINT, name STRING"
ORDER = "id BIGINT, user_id BIGINT"


def orders_with_users(missing: object, **options: object) -> hg.JobDef:
    @hg.job("orders_with_users")
    def define(job: hg.Job) -> None:
        users = job.table("users", hg.topic("log:users", schema=USER), key="id")
        orders = job.source("orders", hg.topic("log:orders", schema=ORDER))
        found = orders.lookup("users_lookup", users, on="user_id", missing=missing, **options)  # type: ignore[arg-type]
        found.sink("out", hg.topic("log:out"))
        if missing == "side" or isinstance(missing, hg.Wait):
            found.missing.sink("missing", hg.topic("log:missing"))

    return define


def by_id(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda r: r["id"])


def test_table_rows_of_a_batch_are_seen_by_its_stream_rows(job_driver: Make) -> None:
    t = job_driver(orders_with_users("side"))
    t.send("orders", {"id": 1, "user_id": 5}, {"id": 2, "user_id": 6})
    t.send("users", {"id": 5, "name": "Ann"}).run()
    assert t.rows("out") == [{"id": 1, "user_id": 5, "users": {"id": 5, "name": "Ann"}}]
    assert t.rows("missing") == [{"id": 2, "user_id": 6}]
    assert t.metrics("users_lookup") == {
        "records_in": 3,
        "records_out": 1,
        "records_out_missing": 1,
    }
    assert t.metrics("missing") == {"records_in": 1, "records_out": 1}
    assert t.state("users_lookup").get(id=5) == {"id": 5, "name": "Ann"}


def test_state_is_kept_between_batches_and_updated(job_driver: Make) -> None:
    t = job_driver(orders_with_users("side"))
    t.send("users", {"id": 1, "name": "old"}, {"id": 2, "name": "two"}).run()
    t.send("users", {"id": 1, "name": "new"}).run()
    t.send("orders", {"id": 1, "user_id": 1}, {"id": 2, "user_id": 2}).run()
    assert [r["users"]["name"] for r in by_id(t.rows("out"))] == ["new", "two"]


@pytest.mark.parametrize("order", [0, 1])
def test_versions_of_a_row_in_one_batch_are_applied_in_source_order(
    job_driver: Make, order: int
) -> None:
    t = job_driver(orders_with_users("side"))
    versions = [{"id": k, "name": f"v{v}"} for v in range(20) for k in range(30)]
    t.send("users", *versions, partition=order)
    t.send("orders", *[{"id": k, "user_id": k} for k in range(30)]).run()
    assert {r["users"]["name"] for r in t.rows("out")} == {"v19"}


def test_a_tombstone_deletes_and_a_later_row_of_the_same_batch_brings_back(
    job_driver: Make,
) -> None:
    t = job_driver(orders_with_users("side"))
    t.send("users", {"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": "c"}).run()
    t.send("users", Deleted(1), Deleted(2), {"id": 2, "name": "again"})
    t.send("orders", *[{"id": k, "user_id": k} for k in (1, 2, 3)]).run()
    assert [r["users"]["name"] for r in by_id(t.rows("out"))] == ["again", "c"]
    assert [r["id"] for r in t.rows("missing")] == [1]
    assert sorted(r["key"]["id"] for r in t.state("users_lookup").all()) == [2, 3]


def test_delete_when_deletes(job_driver: Make) -> None:
    @hg.job("with_delete_when")
    def define(job: hg.Job) -> None:
        schema = "id BIGINT, name STRING, gone BOOLEAN"
        users = job.table(
            "users", hg.topic("log:users", schema=schema), key="id", delete_when="gone"
        )
        orders = job.source("orders", hg.topic("log:orders", schema=ORDER))
        orders.lookup("l", users, on="user_id").sink("out", hg.topic("log:out"))

    t = job_driver(define)
    t.send("users", {"id": 1, "name": "a"}, {"id": 2, "name": "b", "gone": False}).run()
    t.send("users", {"id": 2, "gone": True})
    t.send("orders", {"id": 1, "user_id": 1}, {"id": 2, "user_id": 2}).run()
    assert [r["users"] is None for r in by_id(t.rows("out"))] == [False, True]


def test_a_null_key_never_matches(job_driver: Make) -> None:
    t = job_driver(orders_with_users("side"))
    t.send("users", {"id": None, "name": "nobody"}, {"id": 1, "name": "a"})
    t.send("orders", {"id": 1, "user_id": None}, {"id": 2, "user_id": 1}).run()
    assert [r["id"] for r in t.rows("missing")] == [1]
    assert [r["id"] for r in t.rows("out")] == [2]
    assert len(t.state("users_lookup").all()) == 1


def test_missing_null_goes_on_and_is_counted_as_unmatched(job_driver: Make) -> None:
    t = job_driver(orders_with_users("null"))
    t.send("orders", {"id": 1, "user_id": 1}).run()
    assert t.rows("out") == [{"id": 1, "user_id": 1, "users": None}]
    assert t.metrics("users_lookup") == {
        "records_in": 1,
        "records_out": 1,
        "records_unmatched": 1,
    }


def test_missing_drop_drops_and_counts(job_driver: Make) -> None:
    t = job_driver(orders_with_users("drop"))
    t.send("users", {"id": 1, "name": "a"})
    t.send("orders", {"id": 1, "user_id": 1}, {"id": 2, "user_id": 2}).run()
    assert [r["id"] for r in t.rows("out")] == [1]
    assert t.metrics("users_lookup")["records_dropped"] == 1


def test_take_adds_columns_and_keeps_only_them_in_state(job_driver: Make) -> None:
    t = job_driver(orders_with_users("side", take=["upper(name) AS user_name"]))
    t.send("users", {"id": 1, "name": "ann"})
    t.send("orders", {"id": 1, "user_id": 1}).run()
    assert t.rows("out") == [{"id": 1, "user_id": 1, "user_name": "ANN"}]
    assert t.state("users_lookup").all() == [{"key": {"id": 1}, "row": {"user_name": "ANN"}}]


def test_composite_keys_and_key_expressions(job_driver: Make) -> None:
    @hg.job("composite")
    def define(job: hg.Job) -> None:
        price = job.table(
            "prices",
            hg.topic("log:prices", schema="shop STRING, item BIGINT, price DOUBLE"),
            key=["shop", "item"],
        )
        orders = job.source("orders", hg.topic("log:o", schema="id BIGINT, shop STRING, item INT"))
        found = orders.lookup(
            "p", price, on=["lower(shop)", "item"], take=["price"], missing="side"
        )
        found.sink("out", hg.topic("log:out"))
        found.missing.sink("missing", hg.topic("log:missing"))

    t = job_driver(define)
    t.send("prices", {"shop": "a", "item": 1, "price": 1.5}, {"shop": "b", "item": 1, "price": 2.5})
    t.send("prices", {"shop": "b", "item": 2, "price": 9.0}, Deleted({"shop": "b", "item": 2}))
    t.send("orders", {"id": 1, "shop": "A", "item": 1}, {"id": 2, "shop": "B", "item": 1})
    t.send("orders", {"id": 3, "shop": "B", "item": 2}, {"id": 4, "shop": None, "item": 1}).run()
    assert [(r["id"], r["price"]) for r in by_id(t.rows("out"))] == [(1, 1.5), (2, 2.5)]
    assert [r["id"] for r in by_id(t.rows("missing"))] == [3, 4]


def test_waiting_rows_are_enriched_when_the_table_row_comes(job_driver: Make) -> None:
    t = job_driver(orders_with_users(hg.Wait("1 hour")))
    t.send(
        "orders", {"id": 1, "user_id": 1}, {"id": 2, "user_id": 2}, {"id": 3, "user_id": 1}
    ).run()
    assert t.rows("out") == [] and t.rows("missing") == []
    assert t.metrics("users_lookup")["records_waiting"] == 3
    t.send("users", {"id": 1, "name": "old"}, {"id": 1, "name": "Ann"}).run()
    assert [(r["id"], r["users"]["name"]) for r in by_id(t.rows("out"))] == [(1, "Ann"), (3, "Ann")]
    t.advance_processing_time("50 minutes").run()
    assert t.rows("missing") == []
    t.advance_processing_time("11 minutes").run()
    assert t.rows("missing") == [{"id": 2, "user_id": 2}]
    assert t.metrics("users_lookup") == {
        "records_in": 5,
        "records_out": 2,
        "records_out_missing": 1,
        "records_waiting": 0,
    }


def test_rows_go_on_waiting_when_their_table_row_is_deleted_in_the_same_batch(
    job_driver: Make,
) -> None:
    t = job_driver(orders_with_users(hg.Wait("30 seconds")))
    t.send("orders", {"id": 1, "user_id": 1}).run()
    t.send("users", {"id": 1, "name": "Ann"}, Deleted(1)).run()
    assert t.rows("out") == [] and t.metrics("users_lookup")["records_waiting"] == 1
    t.send("users", {"id": 1, "name": "Bea"}).run()
    assert [r["users"]["name"] for r in t.rows("out")] == ["Bea"]


def test_waiting_rows_survive_a_crash(job_driver: Make) -> None:
    t = job_driver(orders_with_users(hg.Wait("30 seconds")))
    t.send("orders", {"id": 1, "user_id": 1}).run()
    t.send("orders", {"id": 2, "user_id": 1}).crash(at="after_sink").restore()
    t.send("users", {"id": 1, "name": "Ann"}).run()
    assert [(r["id"], r["users"]["name"]) for r in by_id(t.rows("out"))] == [(1, "Ann"), (2, "Ann")]
    assert t.metrics("users_lookup")["records_waiting"] == 0


def test_two_lookups_of_one_table_read_it_once(job_driver: Make) -> None:
    @hg.job("twice")
    def define(job: hg.Job) -> None:
        users = job.table("users", hg.topic("log:users", schema=USER), key="id")
        sales = job.source(
            "sales", hg.topic("log:sales", schema="id BIGINT, buyer BIGINT, seller BIGINT")
        )
        buyer = sales.lookup("buyer_lookup", users, on="buyer", into="b")
        both = buyer.lookup("seller_lookup", users, on="seller", into="s")
        both.select("id", "b.name AS buyer", "s.name AS seller").sink("out", hg.topic("log:out"))

    t = job_driver(define)
    t.send("users", {"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}, partition=1)
    t.send("sales", {"id": 1, "buyer": 1, "seller": 2}, {"id": 2, "buyer": 2, "seller": 3}).run()
    t.send("users", {"id": 3, "name": "Cy"})
    t.send("sales", {"id": 3, "buyer": 3, "seller": 1}).run()
    assert by_id(t.rows("out")) == [
        {"id": 1, "buyer": "Ann", "seller": "Bob"},
        {"id": 2, "buyer": "Bob", "seller": None},
        {"id": 3, "buyer": "Cy", "seller": "Ann"},
    ]
    assert t.metrics("users")["records_out"] == 3
    assert t.metrics("seller_lookup")["records_in"] == 6
