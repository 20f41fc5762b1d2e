"""Joins of two streams, in time and in windows, through the public API."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log import connector as log
from headgate.home.layout import Home
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from headgate.state.plain import plain_rows
from headgate.testing import JobDriver, assert_crash_safe

Make = Callable[..., JobDriver]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDER = "id BIGINT, user STRING, price BIGINT, at TIMESTAMP"
BLOCKS = "spark.headgate.join.block.bytes"
PAYMENT = "order_id BIGINT, amount BIGINT, paid_at TIMESTAMP"


def at(second: float) -> str:
    return (NOON + timedelta(seconds=second)).isoformat()


def order(id: int | None, second: float, price: int = 10) -> dict[str, Any]:
    return {"id": id, "user": f"u{id}", "price": price, "at": at(second)}


def payment(id: int | None, second: float, amount: int = 10) -> dict[str, Any]:
    return {"order_id": id, "amount": amount, "paid_at": at(second)}


def paid(order: str = ORDER, **options: Any) -> hg.JobDef:
    """Orders with their payments, and all that the join leaves aside."""
    options = {"within": hg.between("-10 seconds", "1 minute"), "into": "payment", **options}

    @hg.job("paid")
    def define(job: hg.Job) -> None:
        orders = job.source(
            "orders", hg.topic("log:orders", schema=order), event_time=hg.event_time("at")
        )
        payments = job.source(
            "payments",
            hg.topic("log:payments", schema=PAYMENT),
            event_time=hg.event_time("paid_at"),
        )
        joined = orders.key_by("id").join("paid", payments.key_by("order_id"), **options)
        joined.sink("out", hg.topic("log:out"))
        joined.late.sink("late", hg.topic("log:late"))
        if options.get("left_unmatched") == "side":
            joined.unmatched_left.sink("unpaid", hg.topic("log:unpaid"))
        if options.get("right_unmatched") == "side":
            joined.unmatched_right.sink("unknown", hg.topic("log:unknown"))

    return define


def pairs(t: JobDriver) -> list[tuple[int | None, int | None]]:
    """New pairs: the order's id and the payment's amount."""
    found = [
        (r["id"], None if r["payment"] is None else r["payment"]["amount"]) for r in t.rows("out")
    ]
    return sorted(found, key=str)


def test_rows_of_a_key_match_within_both_bounds(job_driver: Make) -> None:
    t = job_driver(paid())
    t.send("orders", order(1, 0), order(2, 0))
    t.send("payments", *[payment(1, s, s) for s in (-11, -10, 0, 60, 61)], payment(2, 5, 5)).run()
    assert pairs(t) == [(1, -10), (1, 0), (1, 60), (2, 5)]
    t.send("orders", order(1, 10)).run()
    assert pairs(t) == [(1, 0), (1, 60), (1, 61)]
    t.send("payments", payment(1, 70, 70), payment(1, 70, 71)).run()
    assert pairs(t) == [(1, 70), (1, 71)]
    assert t.metrics("paid")["records_in"] == 11
    assert t.metrics("paid")["records_out"] == 9


def test_an_unmatched_row_leaves_once_when_no_match_can_come_any_more(job_driver: Make) -> None:
    t = job_driver(paid(left_unmatched="null", right_unmatched="side"))
    t.send("orders", order(1, 0), order(2, 1), order(3, 100))
    t.send("payments", payment(1, 5, 5), payment(9, 5, 9), payment(3, 100, 3)).run()
    # the watermark is at 100: an order of second 1 is matched until 61, a payment of 5 until 15
    assert pairs(t) == [(1, 5), (2, None), (3, 3)]
    assert [r["order_id"] for r in t.rows("unknown")] == [9]
    t.send("orders", order(4, 200)).send("payments", payment(5, 200, 5)).run()
    assert (pairs(t), t.rows("unknown")) == ([], [])
    t.run(drain=True)
    assert (pairs(t), [r["order_id"] for r in t.rows("unknown")]) == ([(4, None)], [5])
    counts = t.metrics("paid")
    assert counts["records_unmatched"] == 2 and counts["records_out_unmatched_right"] == 2
    assert t.state("paid").all() == []


def test_a_row_behind_the_watermark_is_late(job_driver: Make) -> None:
    t = job_driver(paid())
    t.send("orders", order(1, 100)).send("payments", payment(1, 100)).run()
    t.send("orders", order(2, 200)).send("payments", payment(2, 200)).run()
    assert len(t.rows("out")) == 2
    # what is late is decided by the watermark of the batch before, which was 100
    t.send("orders", order(3, 99), order(4, 100)).send("payments", payment(4, 110, 7))
    t.send("payments", {"order_id": 5, "amount": 1, "paid_at": None}).run()
    assert pairs(t) == [(4, 7)]
    late = t.rows("late")
    assert sorted(r["left"]["id"] for r in late if r["left"]) == [3]
    assert [r["right"]["order_id"] for r in late if r["right"]] == [5]
    assert t.metrics("paid")["records_out_late"] == 2


def test_a_key_that_is_null_matches_nothing(job_driver: Make) -> None:
    t = job_driver(paid(left_unmatched="side", right_unmatched="null"))
    t.send("orders", order(None, 0)).send("payments", payment(None, 0, 3)).run()
    assert [r["user"] for r in t.rows("unpaid")] == ["uNone"]
    assert pairs(t) == [(None, 3)]


def test_a_condition_decides_also_what_is_unmatched(job_driver: Make) -> None:
    t = job_driver(
        paid(where="payment.amount >= price AND nvl(user, '') <> 'u3'", left_unmatched="side")
    )
    t.send("orders", order(1, 0, 10), order(2, 0, 10), order(3, 0, 10))
    t.send("payments", payment(1, 1, 9), payment(1, 2, 10), payment(2, 3, 9), payment(3, 1, 10))
    t.run(drain=True)
    assert pairs(t) == [(1, 10)]
    assert sorted(r["id"] for r in t.rows("unpaid")) == [2, 3]


def test_values_are_taken_of_the_right_row(job_driver: Make) -> None:
    take = ["amount * 2 AS twice", "'x' AS price_kind"]
    t = job_driver(paid(into=None, take=take, left_unmatched="null"))
    t.send("orders", order(1, 0), order(2, 0)).send("payments", payment(1, 1, 4)).run(drain=True)
    found = {r["id"]: (r["twice"], r["price_kind"]) for r in t.rows("out")}
    assert found == {1: (8, "x"), 2: (None, None)}


def test_rows_of_the_same_window_match(job_driver: Make) -> None:
    within = hg.sliding("20 seconds", every="10 seconds")
    t = job_driver(paid(within=within, left_unmatched="side", right_unmatched="null"))
    t.send("orders", order(1, 5), order(2, 15)).send("payments", payment(1, 12, 12)).run(drain=True)
    ends = sorted(
        (str(r["id"]), (r["window_end"] - NOON).total_seconds(), r["payment"] is not None)
        for r in t.rows("out")
    )
    # the order of second 5 is in windows that end at 10 and 20, the payment in 20 and 30
    assert ends == [("1", 20.0, True), ("None", 30.0, True)]
    unpaid = sorted((r["id"], (r["window_end"] - NOON).total_seconds()) for r in t.rows("unpaid"))
    assert unpaid == [(1, 10.0), (2, 20.0), (2, 30.0)]


def test_pairs_and_unmatched_rows_are_on_time_for_windows_that_follow(job_driver: Make) -> None:
    @hg.job("counted")
    def counted(job: hg.Job) -> None:
        orders = job.source(
            "orders", hg.topic("log:orders", schema=ORDER), event_time=hg.event_time("at")
        )
        payments = job.source(
            "payments",
            hg.topic("log:payments", schema=PAYMENT),
            event_time=hg.event_time("paid_at"),
        )
        joined = orders.key_by("id").join(
            "paid",
            payments.key_by("order_id"),
            within=hg.between("0 seconds", "1 minute"),
            into="payment",
            left_unmatched="null",
        )
        windows = joined.key_by("payment IS NULL AS unpaid").window(
            "per_10s", hg.tumbling("10 seconds"), F.count("*").alias("n")
        )
        windows.sink("out", hg.topic("log:out"))
        windows.late.sink("late", hg.topic("log:late"))

    t = job_driver(counted)
    for second in range(0, 300, 20):
        t.send("orders", order(second, second), order(second + 1, second))
        t.send("payments", payment(second, second + 15)).run()
    t.run(drain=True)
    found = Counter[tuple[bool, float]]()
    for r in t.rows("out"):
        found[r["unpaid"], (r["window_start"] - NOON).total_seconds()] += r["n"]
    # a pair has the later of its times; an unmatched order that of the last possible match
    wanted = Counter({(False, s // 10 * 10.0): 1 for s in range(15, 315, 20)})
    wanted.update({(True, s + 60.0): 1 for s in range(0, 300, 20)})
    assert found == wanted
    assert t.rows("late") == []


def test_a_join_is_exact_wherever_the_driver_dies(spark: object) -> None:
    job = paid(left_unmatched="null", right_unmatched="side", where="payment.amount <> 13")
    script: list[tuple[str, Any]] = []
    for n in range(12):
        script += [("orders", order(n % 5, 12 * n)), ("payments", payment(n % 6, 11 * n, n % 14))]
    assert_crash_safe(job, script)


def test_a_stream_is_joined_with_itself(job_driver: Make) -> None:
    @hg.job("twins")
    def twins(job: hg.Job) -> None:
        orders = job.source(
            "orders", hg.topic("log:orders", schema=ORDER), event_time=hg.event_time("at")
        )
        dear = orders.where("price > 5")
        orders.key_by("user").join(
            "next",
            dear.key_by("user"),
            within=hg.between("1 second", "9 seconds"),
            take=["id AS n"],
        ).sink("out", hg.topic("log:out"))

    t = job_driver(twins)
    rows = [(1, 0, 9), (2, 5, 9), (3, 9, 1), (4, 10, 9)]
    t.send("orders", *[{**order(id, s, p), "user": "u"} for id, s, p in rows]).run()
    assert sorted((r["id"], r["n"]) for r in t.rows("out")) == [(1, 2), (2, 4), (3, 4)]


def test_state_is_restored_at_another_parallelism(job_driver: Make) -> None:
    t = job_driver(paid(left_unmatched="null"), parallelism=1)
    t.send("orders", *[order(n, n) for n in range(20)]).run()
    kept = t.savepoint("before")
    assert sorted(r["row"]["left"]["id"] for r in t.state("paid").all()) == list(range(20))
    t.restore(kept, parallelism=3)
    t.send("payments", *[payment(n, n + 1, n) for n in range(0, 20, 2)]).run(drain=True)
    assert pairs(t) == sorted([(n, None if n % 2 else n) for n in range(20)], key=str)


def test_state_goes_on_only_where_it_says_what_the_new_job_needs(job_driver: Make) -> None:
    t = job_driver(paid())
    t.send("orders", order(1, 0)).run()
    kept = t.savepoint("before")
    t.restore(kept, job=paid(within=hg.between("-10 seconds", "2 minutes")))
    with pytest.raises(hg.RefusedError, match="1 minute and is now -10 seconds to 2"):
        t.run()
    t.restore(kept, job=paid(left_unmatched="null"))
    with pytest.raises(hg.RefusedError, match="do not say whether they had a match"):
        t.run()
    t.restore(kept, job=paid(where="payment.amount > 3"))
    t.send("payments", payment(1, 1, 3), payment(1, 1, 4)).run()
    assert pairs(t) == [(1, 4)]


def test_kept_rows_go_on_with_new_columns_and_are_shown_by_key(
    job_driver: Make, spark: SparkSession
) -> None:
    t = job_driver(paid(), parallelism=1)
    t.spark.conf.set(BLOCKS, "1b")  # each row but the last of a side in a block of its own
    try:
        t.send("orders", order(1, 0), order(1, 1, 7), order(2, 2)).run()
        t.send("payments", payment(1, 5, 5)).run()
    finally:
        t.spark.conf.unset(BLOCKS)
    assert pairs(t) == [(1, 5), (1, 5)]
    kept = t.savepoint("before")
    reader = StateReader(spark, find_snapshot(Home(t.home), kept, "paid"))
    mine = [r["row"] for r in plain_rows(reader.get("paid", {"id": "1"}))]
    scanned = [r["row"] for r in t.state("paid").all() if r["key"] == {"id": 1}]
    assert sorted(mine, key=str) == sorted(scanned, key=str)
    shown = sorted(
        (r["side"], r["event_time"].second, (r["left"] or {}).get("price"), r["matched"])
        for r in mine
    )
    assert shown == [(0, 0, 10, None), (0, 1, 7, None), (1, 5, None, None)]  # dropped if unmatched
    t.restore(kept, job=paid(order=f"{ORDER}, country STRING"))
    t.send("payments", payment(1, 6, 6)).run()
    found = [(r["price"], r["country"], r["payment"]["amount"]) for r in t.rows("out")]
    assert sorted(found) == [(7, None, 6), (10, None, 6)]


@pytest.mark.parametrize(
    ("within", "rest"),
    [(hg.tumbling("1 minute"), "side"), (hg.between("0 seconds", "1 minute"), "drop")],
)
def test_all_rows_of_a_hot_key_meet_though_the_watermark_passes_them_in_their_batch(
    job_driver: Make, within: Any, rest: str
) -> None:
    sides = {"left_unmatched": rest, "right_unmatched": rest}
    t = job_driver(paid(within=within, where="payment.amount % 7 = price % 7", **sides))
    lefts = {1: range(1500), 2: (0, 1, 7)}
    rights = {1: (0, 1, 2, 9), 2: range(1500)}
    t.spark.conf.set(BLOCKS, "20k")
    try:
        t.send("orders", order(3, 600)).send("payments", payment(3, 600, 11)).run()
        # rows of seconds 0 to 59: the watermark of the batch before lets them in, theirs is 600
        for key in (1, 2):
            t.send("orders", *[order(key, n % 60 * (key == 1), n) for n in lefts[key]])
            t.send("payments", *[payment(key, 59 - n % 60 * (key == 2), n) for n in rights[key]])
        t.run()
    finally:
        t.spark.conf.unset(BLOCKS)
    found = t.rows("out")
    wanted = [(k, n, m) for k in (1, 2) for n in lefts[k] for m in rights[k] if n % 7 == m % 7]
    assert len(wanted) > 1200
    assert sorted((r["id"], r["price"], r["payment"]["amount"]) for r in found) == sorted(wanted)
    if rest == "side":
        matched = {
            k: ({n for j, n, _ in wanted if j == k}, {m for j, _, m in wanted if j == k})
            for k in (1, 2)
        }
        unpaid = sorted((r["id"], r["price"]) for r in t.rows("unpaid"))
        assert unpaid == [(k, n) for k in (1, 2) for n in lefts[k] if n not in matched[k][0]]
        unknown = sorted((r["order_id"], r["amount"]) for r in t.rows("unknown"))
        alone = [(k, n) for k in (1, 2) for n in rights[k] if n not in matched[k][1]]
        assert unknown == alone
    assert {r["key"]["id"] for r in t.state("paid").all()} == {3}


def test_wide_rows_in_many_windows_are_taken_a_few_at_a_time(job_driver: Make) -> None:
    within = hg.sliding("1 minute", every="10 seconds")
    t = job_driver(paid(within=within, where="payment.amount = price"))
    t.send("orders", order(3, 600)).send("payments", payment(3, 600, 11)).run()
    t.send("orders", *[{**order(1, 0, n), "user": "u" * 100_000} for n in range(60)])
    t.send("payments", payment(1, 9, 0), payment(1, 9, 59), payment(1, 49, 59)).run()
    found = Counter((r["price"], r["payment"]["amount"], len(r["user"])) for r in t.rows("out"))
    assert found == {(0, 0, 100_000): 6, (59, 59, 100_000): 6 + 2}
    # six copies of 60 rows are 36 MB: those that were taken first were put into state meanwhile
    record = t._run_home.latest_checkpoint()
    assert record is not None and record.totals["paid"]["state_inserted"] > 100


def test_state_is_bounded_by_time_and_not_by_the_stream(job_driver: Make) -> None:
    kept: dict[int, tuple[int, int]] = {}
    t = job_driver(paid(right_unmatched="side"), parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "MAX_RECORDS", "700")
        for spans, before in ((50, 0), (200, 50)):  # of 70 seconds each
            seconds = range(before * 70, spans * 70, 5)
            t.send("orders", *[order(s % 7, s) for s in seconds])
            t.send("payments", *[payment(s % 11, s) for s in seconds]).run()
            record = t._run_home.latest_checkpoint()
            assert record is not None
            rows = record.state["paid"]["rows"]
            assert rows == len(t.state("paid").all())
            kept[spans] = (rows, len(t.state("paid", "due").all()))
    assert 0 < kept[200][0] <= kept[50][0], kept
    assert 0 < kept[200][1] <= kept[50][1], kept


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"within": hg.session("1 minute")}, "within must be hg.between"),
        ({"within": "1 minute"}, "within must be hg.between"),
        ({"left_unmatched": "keep"}, "left_unmatched must be 'drop', 'null' or 'side'"),
        ({"into": "price"}, "there would be two columns 'price' in out"),
        ({"take": ["amount"]}, "into and take exclude each other"),
        ({"into": None, "take": []}, "take is empty"),
        ({"into": None, "take": ["amount AS id"]}, "there would be two columns 'id' in out"),
        ({"where": "payment.amount"}, "where must be a condition"),
        ({"where": "sum(price) > 1"}, "but where aggregates"),
        ({"where": "payment.sum > 1"}, "sum"),
    ],
)
def test_what_a_join_cannot_do_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(hg.GraphError, match=re.escape(why)):
        paid(**options).describe()


def test_bounds_and_keys_must_fit() -> None:
    with pytest.raises(hg.GraphError, match="the lower bound of between must not be above"):
        hg.between("1 hour", "-1 hour")

    def made(key: str, **time: Any) -> hg.JobDef:
        @hg.job("wrong")
        def define(job: hg.Job) -> None:
            orders = job.source(
                "orders", hg.topic("log:orders", schema=ORDER), event_time=hg.event_time("at")
            )
            payments = job.source("payments", hg.topic("log:payments", schema=PAYMENT), **time)
            orders.key_by(key).join(
                "paid", payments.key_by("order_id"), within=hg.between("0 s", "1 minute")
            ).sink("out", hg.topic("log:out"))

        return define

    timed = {"event_time": hg.event_time("paid_at")}
    with pytest.raises(hg.GraphError, match="the keys of both streams must have the same types"):
        made("user", **timed).describe()
    with pytest.raises(hg.GraphError, match="event time"):
        made("id").describe()
    with pytest.raises(hg.GraphError, match="make the join with left_unmatched='side'"):
        paid_with_side().describe()


def paid_with_side() -> hg.JobDef:
    """A job that reads a side output which its join does not have."""

    @hg.job("wrong")
    def define(job: hg.Job) -> None:
        orders = job.source(
            "orders", hg.topic("log:orders", schema=ORDER), event_time=hg.event_time("at")
        )
        joined = orders.key_by("id").join(
            "twice", orders.key_by("id"), within=hg.between("0 s", "1 minute"), into="again"
        )
        joined.unmatched_left.sink("out", hg.topic("log:out"))

    return define
