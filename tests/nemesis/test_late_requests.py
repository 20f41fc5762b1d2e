"""Requests of a Kafka transaction that arrive when their producer is in the next one.

A connection breaks while a request is on its way; the client asks again on another one, and goes
on. The first request may still reach the broker, whenever it likes. Nothing in it says which
transaction of the producer it belongs to.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import HeadgateError
from headgate.runtime.run import run
from tests.kafka.client import Kafka
from tests.nemesis.proxy import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    Do,
    Rule,
)
from tests.nemesis.world import ProxiedKafka

pytestmark = pytest.mark.slow
ROWS, A_BATCH = 60, 20


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedKafka]:
    with ProxiedKafka(tmp_path_factory.mktemp("kafka")) as made:
        yield made


@pytest.mark.parametrize(
    ("late", "meets", "dies"),
    [
        (END_TXN, ADD_OFFSETS_TO_TXN, "in_transaction"),  # the rows are sent, their marker is not
        # the broker refuses these by the same number of the producer as the one above
        pytest.param(PRODUCE, ADD_OFFSETS_TO_TXN, "in_transaction", marks=pytest.mark.long),
        pytest.param(
            ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, "in_transaction", marks=pytest.mark.long
        ),
        (TXN_OFFSET_COMMIT, END_TXN, "after_transaction"),
    ],
)
def test_a_late_request_of_one_batch_does_nothing_to_the_next(
    spark: SparkSession, system: ProxiedKafka, tmp_path: Path, late: int, meets: int, dies: str
) -> None:
    kafka, proxy = Kafka(system.direct), system.proxy
    source, out = kafka.topic(1), kafka.topic(1)
    kafka.send(source, [json.dumps({"id": n}) for n in range(ROWS)])
    through = f"kafka://127.0.0.1:{proxy.port}/"

    @hg.job(f"late-{late}")
    def job(job: hg.Job) -> None:
        topic = hg.topic(through + source, schema="id BIGINT", max_records=str(A_BATCH))
        job.source("rows", topic).sink("out", hg.topic(through + out, key="id"))

    def go() -> None:
        home = str(tmp_path / "home")
        error = run(job, home=home, bounded=True, spark=spark, parallelism=1).error
        if error is not None:
            raise error

    answers: list[bytes] = []

    def deliver() -> None:
        answers.append(proxy.deliver(proxy.held[0]))
        jvm.arm_crash(spark, "r1", dies)

    proxy.heal()
    proxy.held.clear()
    proxy.add(Rule(late, Do.HOLD_REQUEST))
    # the first one belongs to the batch whose request is held back
    proxy.add(Rule(meets, Do.DELAY_REQUEST))
    proxy.add(Rule(meets, Do.MEET_REQUEST, then=deliver))
    with pytest.raises(HeadgateError, match="a test requested"):
        go()
    assert len(answers) == 1, "the request was late"
    go()
    got = Counter(json.loads(value or "")["id"] for value in kafka.values(out))
    assert got == Counter(range(ROWS))
