"""The jobs that the nemesis breaks: what feeds them, and what must have come out of them.

What must come out is computed in plain Python from what was sent, and from what the topics that
are read hold; no part of Spark or of the job has a say in it. Only for the lookups the records of
the checkpoints are asked which update of a table came before which order.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from headgate.connectors.log.files import LogRecord, Record, TopicFiles
from tests.kafka.client import Kafka
from tests.nemesis.checker import Finding, Place, compare, ordered, together
from tests.pulsar.client import Pulsar
from tests.reliability import process_job, window_data, window_job
from tests.reliability.chunks import Chunks
from tests.reliability.process_job import LAST, next_link
from tests.reliability.processes import Driver
from tests.reliability.store_data import Producer
from tests.reliability.store_truth import expected, written
from tests.reliability.test_driver_kills import STORE
from tests.reliability.test_windows import assert_panes
from tests.reliability.topics import INPUTS, OUTPUTS, KafkaTopics, LogTopics, PulsarTopics, Topics
from tests.reliability.window_data import Event, Events, finals

CHUNKS = 2000
"""More than a round can take."""
EVERY_MS = 500
"""The interval of all jobs here, unless another one is asked for."""
_RESTART = 'restart=hg.exponential_delay(initial="500 milliseconds", maximum="4 seconds"'
_RESTART += ', reset_after="20 seconds")'


class Job:
    """One kind of job, on one system."""

    name: ClassVar[str]
    inputs: ClassVar[tuple[str, ...]]
    outputs: ClassVar[tuple[str, ...]]
    last: ClassVar[tuple[str, ...]] = ("--bounded",)
    """How it reads all that is left, and ends."""
    executors: ClassVar[int] = 0
    """How many it has in processes of their own."""

    def __init__(
        self, folder: Path, topics: Topics, through: Topics, seed: int, every_ms: int = EVERY_MS
    ) -> None:
        self.folder, self.topics, self.through = folder, topics, through
        self.app = folder / f"{self.name}.py"
        own = f'every="{EVERY_MS} milliseconds"'
        self.app.write_text(replaced(self.text(), (own, f'every="{every_ms} milliseconds"')))
        self.chunks = self.feed(seed)

    def text(self) -> str:
        """The program."""
        raise NotImplementedError

    def feed(self, seed: int) -> Chunks[Any]:
        """Make the topics, and what will be written to them."""
        raise NotImplementedError

    def check(self, home: Path) -> list[Finding]:
        """What is wrong with the outputs."""
        raise NotImplementedError

    def driver(self, home: Path, *flags: str, spark: tuple[str, ...] = ()) -> Driver:
        names = (*self.inputs, *self.outputs)
        return Driver(
            self.app, self.through, home, *flags, spark=spark, job=self.name, names=names,
            log=self.folder / "driver.log",
        )  # fmt: skip

    def rows(self, output: str) -> list[dict[str, Any]]:
        """What a careful reader sees, partition by partition."""
        return [json.loads(record.value or "null") for record in self.topics.read(output)]

    def places(self) -> dict[Place, str]:
        """The same with where it is."""
        return {
            (name, r.partition, r.offset): r.value or ""
            for name in self.outputs
            for r in self.topics.read(name)
        }

    def make_topics(self) -> None:
        for name in (*self.inputs, *self.outputs):
            match self.topics:
                case LogTopics():
                    if name in self.inputs:
                        TopicFiles(self.topics.folder / name).create(2)
                case KafkaTopics():
                    Kafka(self.topics.servers).create(self.topics.prefix + name, 2)
                case PulsarTopics():
                    client = Pulsar(self.topics.url)
                    client.create(self.topics.prefix + name, 2)
                    client.close()


class Lookup(Job):
    """The store: orders that find their user and item while those change."""

    name, inputs, outputs = "store", INPUTS, OUTPUTS

    def text(self) -> str:
        return replaced(
            STORE.read_text(),
            ('every="5 seconds"', f'every="{EVERY_MS} milliseconds"'),
            ('restart=hg.fixed_delay(attempts=5, delay="10 seconds")', _RESTART),
        )

    def feed(self, seed: int) -> Chunks[Any]:
        made = Producer(self.topics, orders=100 * CHUNKS, chunks=CHUNKS, seed=seed)
        self._all = [list(chunk) for chunk in made._chunks]
        return made

    def check(self, home: Path) -> list[Finding]:
        sent = Counter(n for chunk in self._all[: self.chunks._round] for n in chunk)
        there: Counter[int] = Counter()
        for output in OUTPUTS:
            for row in self.rows(output):
                if output == "malformed":
                    there[int(row["value"].split(":")[1].split(",")[0])] += 1
                else:
                    there[row["lineItemId"]] += 1
        found = compare("all outputs, by order", sent, there)
        truth, got = expected(home, self.topics), written(self.topics)
        for output in OUTPUTS:
            found += compare(output, truth.rows[output], got[output])
        return found


class Flow(Chunks[Event]):
    """Events of users; those of a key are in one partition, in the order of their ids."""

    def __init__(self, topics: Topics, seed: int, size: int) -> None:
        pick = random.Random(seed)
        made = [Events._made(pick, number, size) for number in range(CHUNKS)]
        self.sent: list[Event] = []
        self._topics = topics
        super().__init__(made, taken=lambda: 0)

    def write(self, chunk: list[Event]) -> None:
        self.sent += chunk
        for half in (0, 1):
            self._append([event for event in chunk if event.id % 2 == half], half)

    def _append(self, events: list[Event], half: int) -> None:
        records = [Record(window_data.event_json(e), f"{e.user}/{half}") for e in events]
        if isinstance(self._topics, LogTopics):
            # A limited batch takes equal shares of the partitions. Of a long backlog whose
            # partitions are not alike it would read one far ahead of the other, and rows of the
            # other would be late by more than the truth allows.
            TopicFiles(self._topics.folder / "events").append(records, half)
        else:
            self._topics.append("events", records)


class _EventJob(Job):
    size: ClassVar[int]
    chunks: Flow

    def feed(self, seed: int) -> Chunks[Any]:
        self.make_topics()
        return Flow(self.topics, seed, self.size)

    def unsent(self) -> list[Finding]:
        """What is wrong with the input itself: then all else follows from that."""
        there = Counter(row["id"] for row in self.rows("events"))
        found = compare("events", Counter(event.id for event in self.chunks.sent), there)
        return [Finding(f"input {f.kind}", f.where, f.rows, f.examples) for f in found]


class Chains(_EventJob):
    """A process function in Python, whose rows depend on all rows of the key before them."""

    name, inputs, outputs = "chains", ("events",), ("links", "copies")
    size = 60

    def text(self) -> str:
        sink = 'links.sink("links", hg.topic(job.param("links")))'
        return replaced(
            Path(process_job.__file__).read_text(),
            ('restart=hg.fixed_delay(attempts=5, delay="1 second")', _RESTART),
            (sink, 'links.sink("links", hg.topic(job.param("links"), key="user"))\n'
                   '    links.sink("copies", hg.topic(job.param("copies"), key="user"))'),
        )  # fmt: skip

    def check(self, home: Path) -> list[Finding]:
        found = self.unsent()
        truth = Counter(self._truth(self.topics.read("events")))
        ids = {}
        for output in self.outputs:
            rows = self.rows(output)
            got = Counter(
                (r["user"], r["half"], r["id"], r["count"], r["chain"], tuple(r["last"]))
                for r in rows
            )
            found += compare(output, truth, got)
            found += ordered(output, rows, lambda r: (r["user"], r["half"]), "count")
            ids[output] = Counter(r["id"] for r in rows)
        return found + together(ids)

    @staticmethod
    def _truth(records: Iterable[LogRecord]) -> Iterable[tuple[Any, ...]]:
        seen: dict[tuple[str, int], list[int]] = defaultdict(list)
        chain: dict[tuple[str, int], int] = defaultdict(int)
        for record in records:
            event = json.loads(record.value or "")
            key = (event["user"], event["id"] % 2)
            chain[key] = next_link(chain[key], event["id"])
            seen[key].append(event["id"])
            yield (*key, event["id"], len(seen[key]), chain[key], tuple(seen[key][-LAST:]))


class Clustered(Chains):
    """The same with executors of their own."""

    executors = 2


class Visits(_EventJob):
    """Windows with early rows and lateness, and sessions."""

    name, inputs = "visits", ("events",)
    outputs = ("counts_out", "counts_late", "sessions_out", "sessions_late")
    last = ("--bounded", "--drain")
    size = 100

    def text(self) -> str:
        return replaced(
            Path(window_job.__file__).read_text(),
            ('restart=hg.fixed_delay(attempts=5, delay="1 second")', _RESTART),
            # as many of the chunks here as it takes of those there
            ('max_records="3000"', 'max_records="300"'),
        )

    def check(self, home: Path) -> list[Finding]:
        found = self.unsent()
        truth = Events.__new__(Events)  # what its methods say depends on the events alone
        truth.all = self.chunks.sent
        ids = {}
        for step, windows in (("counts", truth.tumbling()), ("sessions", truth.sessions())):
            rows = self.rows(f"{step}_out")
            late = self.rows(f"{step}_late")
            got = Counter((w, tuple(sorted(ids))) for w, ids in finals(rows))
            wanted = Counter((w, tuple(sorted(ids))) for w, ids in windows.items())
            found += compare(f"{step}_out", wanted, got)
            came = Counter((r["id"], r["user"], r["at"]) for r in late)
            found += compare(f"{step}_late", truth.late(), came)
            ids[step] = Counter(id for _, some in got for id in some)
            ids[step] += Counter(r["id"] for r in late)
        found += together(ids)
        try:
            assert_panes(self.rows("counts_out"))
        except AssertionError as error:
            found.append(Finding("panes", "counts_out", 1, (str(error)[:200],)))
        return found


JOBS: dict[str, type[Job]] = {
    "lookup": Lookup, "process": Chains, "window": Visits, "cluster": Clustered,
}  # fmt: skip


class Feeder(threading.Thread):
    """Writes a chunk now and then, whatever happens to the job, until it is told to end."""

    def __init__(self, chunks: Chunks[Any], broker: threading.Lock, pace: float) -> None:
        super().__init__(daemon=True)
        self._chunks, self._broker, self._pace = chunks, broker, pace
        self._ends = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        while not self._ends.wait(self._pace):
            with self._broker:
                try:
                    self._chunks.chunk()
                except Exception as error:
                    self.error = error
                    return

    def end(self) -> None:
        self._ends.set()
        self.join()


def replaced(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text
