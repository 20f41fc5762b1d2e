"""A source's subscription: acknowledged behind every checkpoint, and never ahead of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import headgate as hg
from headgate.base.errors import HeadgateError, JobFailedError, RefusedError
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.partition import first_places
from headgate.connectors.pulsar.stream import PulsarStreamReader, ReaderOptions
from headgate.home.layout import Home
from headgate.snapshots.spark_log import latest_committed, pending_batch, read_entry
from tests.pulsar.client import Pulsar, Send, until
from tests.reading import Reading

APP = """
import headgate as hg


@hg.job("reading", checkpoints=hg.Checkpoints(every="500 milliseconds"))
def reading(job: hg.Job) -> None:
    source = hg.topic(job.param("topic"), schema="id BIGINT", subscription="shop", max_records="80")
    job.source("in", source).sink("out", hg.LogSink(job.param("out")))
"""


def numbered(numbers: range) -> list[Send]:
    return [Send(json.dumps({"id": n}), str(n)) for n in numbers]


def start(folder: Path, address: str, *flags: str, **env: str) -> subprocess.Popen[bytes]:
    app = folder / "app.py"
    app.write_text(APP)
    with open(folder / "driver.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "run", str(app), "--home",
             str(folder / "home"), "--set", f"topic={address}", "--set", f"out={folder / 'out'}",
             *flags],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **env},
        )  # fmt: skip


def entries(offset: dict[str, Any]) -> dict[int, tuple[int, int]]:
    """The ledger and entry of each partition in an offset."""
    ids = {int(p): id.split(":") for p, id in offset.items() if p.isdigit()}
    return {p: (int(ledger), int(entry)) for p, (ledger, entry, _) in ids.items()}


def committed(folder: Path) -> dict[int, tuple[int, int]]:
    """Where the newest batch of the job ended that Spark has committed."""
    run = Home(str(folder / "home")).job("reading").current()
    assert run is not None
    batch = latest_committed(run)
    entry = read_entry(run, batch) if batch is not None else None
    return entries(json.loads(entry.lines[0])) if entry else {}


# In part: reliability/test_pulsar.py has a subscription, kills and a halt, and then no backlog.
@pytest.mark.long
def test_should_acknowledge_what_is_committed_and_nothing_else(
    pulsar: Pulsar, reading: Reading
) -> None:
    topic, folder = pulsar.topic(2), reading.folder
    pulsar.send(topic, numbered(range(0, 1500, 5)), batch=7)
    pulsar.send(topic, numbered(range(1500, 3000, 5)))
    # all of batch 2 is out and read, but its checkpoint is not committed
    driver = start(folder, pulsar.address(topic), HEADGATE_HALT="before_commit:2")
    assert driver.wait(180) != 0
    run = Home(str(folder / "home")).job("reading").current()
    assert run is not None and pending_batch(run) == 2
    acknowledged, safe = pulsar.acknowledged(topic, "shop"), committed(folder)
    assert all(acknowledged[p] <= safe[p] for p in safe), (acknowledged, safe)
    assert any(entry >= 0 for _, entry in acknowledged.values()), "batch 0 was acknowledged"
    assert pulsar.backlog(topic, "shop") > 0

    driver = start(folder, pulsar.address(topic))
    until(lambda: pulsar.backlog(topic, "shop") == 0, 180)
    assert reading.ids() == list(range(0, 3000, 5))
    assert pulsar.acknowledged(topic, "shop") == committed(folder)
    pulsar.send(topic, numbered(range(3000, 3020, 5)), batch=3)
    until(lambda: len(reading.ids()) == 604 and pulsar.backlog(topic, "shop") == 0, 60)
    driver.terminate()
    assert driver.wait(60) == 0, (folder / "driver.log").read_text()[-3000:]


class Forgetful:
    """A topic of one partition that keeps nothing for those who do not ask for it."""

    def __init__(self, pulsar: Pulsar) -> None:
        self.pulsar = pulsar
        # with deduplication on, the broker's own cursor would keep messages, too
        self.name = pulsar.topic(1, deduplication=False)
        nothing = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
        pulsar.ask(f"{self.name}/retention", "POST", nothing)
        (self.part,) = pulsar.parts(self.name)

    def forget(self, place: str) -> None:
        """Wait until the broker has deleted a message that nobody needs any more."""
        ledger = int(place.split(":")[0])
        until(lambda: self._first_ledger() > ledger)

    def _first_ledger(self) -> int:
        self.pulsar.ask(f"{self.part}/unload", "PUT")  # closes the ledger: it can be deleted
        self.pulsar.ask(f"{self.part}/trim", "POST")
        return int(self.pulsar.ask(f"{self.part}/internalStats")["ledgers"][0]["ledgerId"])


def test_should_go_on_when_the_broker_deleted_what_was_acknowledged(
    pulsar: Pulsar, reading: Reading
) -> None:
    topic = Forgetful(pulsar)
    source = hg.PulsarSource(pulsar.url, topic.name, "id BIGINT", subscription="shop")
    for part in (range(30), range(30, 60)):
        pulsar.send(topic.name, numbered(part), batch=4)
        reading.go(source)
    until(lambda: pulsar.backlog(topic.name, "shop") == 0)
    first, last = reading.checkpoints()[0], reading.checkpoints()[-1]
    topic.forget(str(last.sources["in"].end["0"]))
    with pytest.raises(RefusedError, match="records between are gone"):
        reading.go(source, restore=f"ck:{first.id}")  # there is not one message now
    pulsar.send(topic.name, numbered(range(60, 70)))
    reading.go(source)  # nothing is lost: the subscription kept what was not read
    assert reading.ids() == list(range(70))
    with pytest.raises(RefusedError, match="records between are gone"):
        reading.go(source, restore=f"ck:{first.id}")


@pytest.mark.parametrize("more", [range(0), range(40, 50)])
def test_should_stop_when_nobody_kept_what_was_not_read(
    pulsar: Pulsar, reading: Reading, more: range
) -> None:
    topic = Forgetful(pulsar)
    source = hg.PulsarSource(pulsar.url, topic.name, "id BIGINT", subscription="shop")
    pulsar.send(topic.name, numbered(range(30)), batch=4)
    reading.go(source)
    pulsar.ask(f"{topic.part}/subscription/shop?force=true", "DELETE")
    pulsar.send(topic.name, numbered(range(30, 40)))
    topic.forget(str(reading.checkpoints()[-1].sources["in"].end["0"]))
    pulsar.send(topic.name, numbered(more))
    with pytest.raises(JobFailedError, match="gone from the topic"):
        reading.go(source)


def test_should_keep_all_of_a_partition_that_came_later(pulsar: Pulsar) -> None:
    topic = pulsar.topic(1)
    pulsar.send(topic, numbered(range(5)))
    options = {
        "url": pulsar.url,
        "topic": f"persistent://public/default/{topic}",
        "columns": "value",
        "start": json.dumps("latest"),
        "subscription": "shop",
    }
    reader = PulsarStreamReader(ReaderOptions.of(options))
    try:
        began = reader.latestOffset({}, ReadAllAvailable())
        assert pulsar.backlog(topic, "shop") == 0, "a run that begins at the end wants what comes"
        pulsar.grow(topic, 3)
        pulsar.send(topic, numbered(range(10, 40)))
        reader.latestOffset(began, ReadAllAvailable())
        assert pulsar.backlog(topic, "shop") == 30
    finally:
        reader.stop()


def test_should_say_that_no_broker_tells_where_a_topic_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patiently = PulsarAccess.connect
    monkeypatch.setattr(PulsarAccess, "connect", lambda self: patiently(self, answer_seconds=1))
    with pytest.raises(HeadgateError, match="broker does not answer") as silent:
        first_places(PulsarAccess("pulsar://127.0.0.1:9"), "persistent://public/default/orders")
    assert silent.value.remedy
