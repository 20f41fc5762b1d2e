"""A process function with two inputs from Kafka to Kafka, with crashes on the way."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from examples.settle.settle import Order, Payment, Settled, settle_orders
from headgate import jvm
from headgate.base.errors import HeadgateError
from headgate.runtime.run import RunOutcome, run
from tests.kafka.client import Kafka, Send

NOON = datetime(2026, 1, 1, 12)
TOPICS = ("orders", "payments", "settled", "unpaid")


def sent(row: Order | Payment) -> Send:
    return Send(json.dumps(asdict(row), default=str), row.order_id)


def truth(orders: list[Order], payments: list[Payment]) -> tuple[list[Settled], list[str]]:
    """What is settled and what is not, when orders come before payments."""
    by_order = defaultdict(list)
    for payment in payments:
        by_order[payment.order_id].append(payment)
    settled, unpaid = [], []
    for order in orders:
        paid, methods = 0.0, []
        for payment in by_order[order.order_id]:
            paid += payment.amount
            methods.append(payment.method)
            if paid >= order.amount:
                count = len(methods)
                settled.append(Settled(order.order_id, paid, count, sorted(set(methods))))
                break
        else:
            unpaid.append(order.order_id)
    return settled, unpaid


def test_orders_are_settled_once_whatever_fails(
    spark: SparkSession, kafka_servers: str, tmp_path: Path
) -> None:
    kafka, pick = Kafka(kafka_servers, calm=True), random.Random(8)
    topics = {name: kafka.topic(3) for name in TOPICS}
    orders = [
        Order(f"order-{n * 7919}", float(pick.randrange(4, 40, 4)), NOON + timedelta(seconds=n))
        for n in range(400)
    ]
    # whole numbers of fourths: their sums do not depend on the order in which they are made
    payments = [
        Payment(order.order_id, pick.choice(["card", "cash", "gift"]), pick.randrange(1, 60) / 4)
        for order in orders
        for _ in range(pick.randrange(5))
    ]

    def go() -> RunOutcome:
        outcome = run(
            settle_orders, home=str(tmp_path), bounded=True, drain=True, spark=spark, parallelism=3,
            params={name: f"kafka://{kafka_servers}/{topics[name]}" for name in TOPICS},
        )  # fmt: skip
        if outcome.error is not None:
            raise outcome.error
        return outcome

    kafka.send(topics["orders"], [sent(order) for order in orders])
    kafka.send(topics["payments"], [sent(payment) for payment in payments])
    for point in ("in_transaction", "after_transaction"):
        jvm.arm_crash(spark, "r1", point)
        with pytest.raises(HeadgateError, match="a test requested"):
            go()
    assert go().how == "finished"

    def written(name: str) -> list[dict[str, Any]]:
        return [json.loads(value or "") for value in kafka.values(topics[name])]

    settled, unpaid = truth(orders, payments)
    assert len(settled) > 50 and len(unpaid) > 50
    by_order = sorted(settled, key=lambda row: row.order_id)
    assert sorted(written("settled"), key=lambda r: r["order_id"]) == [asdict(s) for s in by_order]
    assert sorted(row["order_id"] for row in written("unpaid")) == sorted(unpaid)
