"""Jobs on a broker that asks for a password and looks at rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import HeadgateError
from headgate.runtime.run import run
from tests.kafka.client import Kafka, Send
from tests.kafka.secured import Secured


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    yield made
    made.broker.stop()


class Login:
    """A job from topic to topic as a user of a secured broker."""

    def __init__(self, spark: SparkSession, folder: Path, secured: Secured) -> None:
        self.spark, self.folder, self.secured = spark, folder, secured
        self.kafka = Kafka(secured.inner)  # the back door, for looking in
        self.source, self.sink = self.kafka.topic(2), self.kafka.topic(2)
        self.kafka.send(self.source, [Send(json.dumps({"id": n})) for n in range(0, 90, 3)])

    def go(self, user: str, password: str | None = None) -> None:
        options = self.secured.properties(user, password)
        servers = self.secured.servers

        @hg.job("login")
        def login(job: hg.Job) -> None:
            rows = job.source(
                "in", hg.KafkaSource(servers, self.source, "id BIGINT", options=options)
            )
            rows.sink("out", hg.KafkaSink(servers, self.sink, key="id", options=options))

        outcome = run(login, home=str(self.folder / "home"), bounded=True, spark=self.spark)
        if outcome.error is not None:
            raise outcome.error


@pytest.fixture
def login(spark: SparkSession, tmp_path: Path, secured: Secured) -> Login:
    return Login(spark, tmp_path, secured)


def test_should_read_and_write_with_the_jobs_credentials(login: Login) -> None:
    login.go("alice")
    found = sorted(json.loads(value or "")["id"] for value in login.kafka.values(login.sink))
    assert found == list(range(0, 90, 3))
    written = [path.read_text(errors="replace") for path in login.folder.rglob("*.json")]
    assert written and not any("alice-secret" in text for text in written)


def test_should_say_that_the_password_is_wrong(login: Login) -> None:
    with pytest.raises(HeadgateError, match="denied the job access") as refused:
        login.go("alice", "guessed")
    assert "guessed" not in str(refused.value)


def test_should_say_before_the_start_which_right_is_missing(login: Login) -> None:
    for operation in (AclOperation.READ, AclOperation.DESCRIBE):
        login.secured.grant(login.source, "bob", operation)
    login.secured.grant(login.sink, "bob", AclOperation.DESCRIBE)
    with pytest.raises(HeadgateError, match=f"may not write kafka://.*/{login.sink}") as refused:
        login.go("bob")
    assert refused.value.step == "out"
    assert login.kafka.read(login.sink) == []
