"""What a function yields is what a test reads from the sink, whatever its type."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from pyspark.sql import Row, SparkSession

import headgate as hg
from headgate.testing import JobDriver


@dataclass
class Everything:
    key: str
    ratio: float
    raw: bytes
    exact: Decimal
    at: datetime
    parts: list[bytes]
    by_number: dict[int, float]
    by_truth: dict[bool, bytes]
    by_day: dict[date, Decimal]
    by_time: dict[datetime, date]
    by_ratio: dict[float, str]


class Gives(hg.Process):
    def on_keys(self, row: Row, ctx: hg.Context) -> hg.Out[Everything]:
        noon = datetime(2024, 1, 2, 12, 0, 0, 3000)
        yield Everything(
            row.key, -math.inf, b"\x00\xff", Decimal("12345678901234567890.5"), noon, [b"", b"a"],
            {-7: 0.1}, {True: b"yes", False: b"no"}, {noon.date(): Decimal("0.25")},
            {noon: date(1969, 7, 20)}, {0.5: "half"},
        )  # fmt: skip


@hg.job("everything")
def everything(job: hg.Job) -> None:
    keys = job.source("keys", hg.topic("log:keys", schema="key STRING"))
    job.process("gives", Gives(), keys=keys.key_by("key")).sink("out", hg.topic("log:out"))


def test_rows_of_a_sink_have_their_types(spark: SparkSession) -> None:
    with JobDriver(everything) as t:
        (row,) = t.send("keys", {"key": "k"}).run().rows("out")
    noon = datetime(2024, 1, 2, 12, 0, 0, 3000, UTC)  # a TIMESTAMP of Spark's is a moment
    assert row == asdict(
        Everything(
            "k", -math.inf, b"\x00\xff", Decimal("12345678901234567890.5"), noon, [b"", b"a"],
            {-7: 0.1}, {True: b"yes", False: b"no"}, {noon.date(): Decimal("0.25")},
            {noon: date(1969, 7, 20)}, {0.5: "half"},
        )
    )  # fmt: skip
