"""The store job from Pulsar to Pulsar, with real kills of the driver and of the broker."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.reliability.soak_pulsar import Soak


@pytest.mark.slow
def test_rows_and_message_ids_are_exact_when_driver_and_broker_are_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print(Soak(tmp_path, orders=8_000, kills=2, seed=seed).run(spark))
