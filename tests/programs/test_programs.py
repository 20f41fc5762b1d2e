"""Programs as users write them, with brokers in their code, run unchanged and without brokers."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from examples.countries.countries import country_activity
from examples.visits.visits import visits_counter
from headgate.testing import JobDriver, ProcessDriver, assert_crash_safe
from tests.programs.orders import order_enrichment
from tests.programs.settle import Order, Payment, SettleOrders, settle_orders

NOON = datetime(2026, 1, 1, 12)


def test_unpaid_after_30_minutes() -> None:
    driver = ProcessDriver(SettleOrders())
    assert driver.send("orders", Order("o1", 10.0, NOON), key="o1", at=NOON) == []
    assert driver.timers(key="o1") == {"deadline": NOON + timedelta(minutes=30)}
    driver.advance_watermark(NOON + timedelta(minutes=31))
    assert driver.side("unpaid") == [Order("o1", 10.0, NOON)]
    assert driver.state("order", key="o1") is None


def test_an_unknown_user_goes_to_the_side_output(spark: SparkSession) -> None:
    with JobDriver(order_enrichment, params={"servers": "test"}) as t:
        t.send("users", {"id": 1, "first_name": "Ann"})
        t.send("orders", {"invoice_id": 7, "user_id": 2, "item_id": 3, "price": 9.5}).run()
        assert t.rows("enriched_orders") == []
        assert [r["invoice_id"] for r in t.rows("missing_users")] == [7]
        assert t.metrics("users_lookup") == {
            "records_in": 2, "records_out": 0, "records_out_missing": 1,
        }  # fmt: skip


def test_one_final_row_of_a_window_across_a_crash(spark: SparkSession) -> None:
    with JobDriver(visits_counter) as t:
        t.send("visits", {"visit_id": 1, "event_time": "2026-01-01T12:01:00"}).run()
        savepoint = t.savepoint()
        t.send("visits", {"visit_id": 1, "event_time": "2026-01-01T12:02:00"})
        t.crash(at="after_sink").restore()
        t.advance_watermark("visits", "2026-01-01T12:15:00").run()
        final = [r for r in t.rows("visits_counter") if not r["is_partial"]]
        assert [r["visits"] for r in final] == [2]
        t.restore(savepoint, parallelism=3)
        assert t.state("visits_15m").get(visit_id=1)["visits"] == 1


def test_a_country_alerts_once_an_hour(spark: SparkSession) -> None:
    with JobDriver(country_activity, params={"servers": "test"}) as t:
        for minute in range(12):
            at = f"2026-01-01T12:{minute:02}:00"
            t.send("events", {"user_id": "u", "country": "pl", "page": "a", "event_time": at})
        t.run()
        assert [(r["country"], r["events"]) for r in t.rows("alerts")] == [("PL", 12)]
        t.advance_watermark("events", "2026-01-01T15:00:00").run()
        assert [(r["country"], r["events"], r["users"]) for r in t.rows("hourly")] == [
            ("PL", 12, 1)
        ]
        assert [(r["user_id"], r["events"], r["pages"]) for r in t.rows("sessions")] == [
            ("u", 12, ["a"])
        ]
        assert t.rows("alerts") == []


@pytest.mark.slow
def test_a_settlement_survives_a_crash_everywhere(spark: SparkSession) -> None:
    script = [("orders", Order("o1", 10.0, NOON)), ("payments", Payment("o1", "card", 10.0))]
    assert_crash_safe(settle_orders, script)
