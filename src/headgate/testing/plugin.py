"""The pytest plugin: a session, drivers that close themselves, real brokers and a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.api.job import JobDef
    from headgate.testing.job_driver import JobDriver
    from headgate.testing.postgres import PostgresServer


@pytest.fixture(scope="session")
def headgate_spark() -> Iterator[SparkSession]:
    """The Spark session that drivers share; it starts once a test run."""
    from headgate.runtime.session import get_session

    spark = get_session(master="local[2]")
    yield spark
    spark.stop()


@pytest.fixture
def job_driver(headgate_spark: SparkSession) -> Iterator[Callable[..., JobDriver]]:
    """Make drivers: `t = job_driver(store, params={...})`; they are closed after the test."""
    from headgate.testing.job_driver import JobDriver

    with ExitStack() as stack:

        def make(job: JobDef, **options: Any) -> JobDriver:
            return stack.enter_context(JobDriver(job, **options))

        yield make


@pytest.fixture(scope="session")
def kafka_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address, `host:port`, of a real Kafka broker that runs until the tests have ended."""
    from headgate.brokers import KafkaBroker

    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.servers


@pytest.fixture(scope="session")
def pulsar_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address, `pulsar://host:port`, of a real Pulsar broker that runs until the tests end."""
    from headgate.brokers import PulsarBroker

    with PulsarBroker(tmp_path_factory.mktemp("pulsar")) as broker:
        yield broker.servers


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL server that runs until the tests have ended, with its `url` and `sql`."""
    from headgate.testing.postgres import PostgresServer

    with PostgresServer() as server:
        yield server
