"""Owns one run of the latency bench: a new broker, one engine, the feeder and the reader."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.data import item_line, user_line
from bench.latency_engine import Engine
from bench.latency_orders import INPUTS, ITEMS, OUTPUTS, PARTITIONS, USERS, Stretch
from bench.latency_tally import Spread, Verdict
from bench.process import end_group
from bench.thread_cpu import Sample, Used, sample, used
from headgate.brokers import KafkaBroker

_SETTLE_SECONDS = 2.0
"""Between the engine's start and the first order, for feeder and reader to start."""
_END_SECONDS = 240.0


@dataclass(frozen=True)
class Setting:
    """What is run: a job in an engine, with its interval, at a rate."""

    engine: str
    job: str
    every_ms: int
    rate: int


@dataclass(frozen=True)
class Measured:
    """One stretch: the times of its orders, and what was used of the processor meanwhile."""

    warm_up: int
    seconds: int
    spread: Spread | None
    used: Used


@dataclass(frozen=True)
class Outcome:
    """What a run gave; the event log is of the seconds behind the last stretch."""

    setting: Setting
    verdict: Verdict
    measured: list[Measured]
    feeder_latest_ms: float
    events: list[str]


def run(setting: Setting, stretches: list[Stretch], profile_seconds: int) -> Outcome:
    """Start all, feed, read, end all."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-latency-"))
    try:
        # Flink leaves thousands of transactional ids on a broker: each run has one of its own.
        with KafkaBroker(folder / "kafka") as broker:
            _fill(broker.servers, setting.job)
            place = folder / "engine"
            place.mkdir()
            with Engine(
                setting.engine, setting.job, broker.servers, setting.every_ms, place
            ) as engine:
                return _measure(setting, stretches, profile_seconds, broker.servers, engine)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(
    setting: Setting, stretches: list[Stretch], profile_seconds: int, servers: str, engine: Engine
) -> Outcome:
    profiled = profile_seconds if setting.engine == "headgate" else 0
    end = max(s.warm_up + s.seconds for s in stretches)
    seconds = end + profiled
    common = [servers, setting.job, str(setting.rate), str(seconds)]
    texts = [f"{s.warm_up}:{s.seconds}" for s in stretches]
    begin = time.time() + _SETTLE_SECONDS
    with _python("bench.latency_read", [*common, *texts]) as reader:
        with _python("bench.latency_feed", [*common, repr(begin)]) as feeder:
            samples = _samples(engine, begin, stretches)
            if profiled:
                engine.write_events()
            _wait_until(begin + seconds, engine)
            events = engine.events() if profiled else []
            fed = _result(feeder)
        found = _result(reader)
    engine.check()
    return Outcome(
        setting,
        Verdict(**found["verdict"]),
        [
            Measured(part.warm_up, part.seconds, Spread(**spread) if spread else None, used(*pair))
            for part, spread, pair in zip(stretches, found["spreads"], samples, strict=True)
        ],
        fed["latest_ms"],
        events,
    )


def _samples(
    engine: Engine, begin: float, stretches: Iterable[Stretch]
) -> list[tuple[Sample, Sample]]:
    found = []
    for part in stretches:
        _wait_until(begin + part.warm_up, engine)
        before = sample(engine.pid)
        _wait_until(begin + part.warm_up + part.seconds, engine)
        found.append((before, sample(engine.pid)))
    return found


def _wait_until(moment: float, engine: Engine) -> None:
    while (left := moment - time.time()) > 0:
        time.sleep(min(left, 1.0))
        engine.check()


def _fill(servers: str, job: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    topics = [NewTopic(name, PARTITIONS, 1) for name in (*INPUTS[job], *OUTPUTS[job])]
    for made in admin.create_topics(topics).values():
        made.result(30)
    if "users" in INPUTS[job]:
        _send(servers, "users", ((str(n), user_line(n)) for n in range(USERS)))
        _send(servers, "items", ((str(n), item_line(n)) for n in range(ITEMS)))


def _send(servers: str, topic: str, records: Iterable[tuple[str, str]]) -> None:
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 500_000,
         "log_level": 0}
    )  # fmt: skip
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(120) == 0


@contextmanager
def _python(module: str, words: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        end_group(process)


def _result(process: subprocess.Popen[str]) -> dict[str, Any]:
    said, _ = process.communicate(timeout=_END_SECONDS)
    lines = [line for line in said.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise RuntimeError(f"{process.args} ended with {process.returncode} and no result")
    result: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return result
