"""Asking the brokers of a job whether its topics are there and let it in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from headgate.base.errors import HeadgateError, NotFoundError
from headgate.connectors.base import Finding, Sink, Source
from headgate.connectors.broker_probe import Service, nobody_at
from headgate.connectors.topics import missing_topic
from headgate.failures import Reason
from headgate.graph import Step
from headgate.graph.check import location_of
from headgate.graph.plan import BuiltJob

# A broker that was started together with the job is there by then.
_PATIENCE_SECONDS = 8.0
_ANSWER_SECONDS = 3.0
_PAUSE_SECONDS = 0.5
_SILENT = (Reason.BROKER_UNREACHABLE, Reason.DATABASE_UNREACHABLE)
_MAY_COME_BACK = (*_SILENT, Reason.ICEBERG_CATALOG, Reason.REGISTRY_UNREACHABLE)


def findings(built: BuiltJob, spark: SparkSession) -> Iterator[tuple[Step, Finding]]:
    """What the brokers say about every source, table and sink that lives in one.

    A broker that does not answer is probed once, with a small request: clients of Kafka and Pulsar
    try for half a minute and more before they say anything.
    """
    silent: dict[str, Finding] = {}
    for node in built.nodes:
        connector = node.operation.connector
        if connector is None:
            continue
        address = connector.describe()
        service = _service(address)
        if service in silent:
            yield node.step, replace(silent[service], about=address)
            continue
        if _is_silent(connector):
            nobody = Finding(address, nobody_at(service), Reason.BROKER_UNREACHABLE)
            silent[service] = nobody
            yield node.step, nobody
            continue
        for finding in connector.live(spark):
            if finding.reason in _SILENT:  # a registry is not where the topic is
                silent[service] = finding
            yield node.step, finding


def _is_silent(connector: Source | Sink) -> bool:
    """Whether the broker of a source or sink gives no sign of life, probed again and again."""
    service = Service.of(connector)
    until = time.monotonic() + _PATIENCE_SECONDS
    while service is not None and not service.answers(_ANSWER_SECONDS):
        if time.monotonic() > until:
            return True
        time.sleep(_PAUSE_SECONDS)
    return False


def _service(address: str) -> str:
    """The part of an address that topics of one broker share.

    >>> _service("kafka://a:9092,b:9092/orders"), _service("pulsar://a:6650/shop/live/orders")
    ('kafka://a:9092,b:9092', 'pulsar://a:6650')
    """
    return "/".join(address.split("/")[:3])


@dataclass(frozen=True)
class LiveCheck:
    """What the brokers of a job said."""

    findings: tuple[tuple[Step, Finding], ...]
    transactions: tuple[str, ...]
    """Transactions of the job that are open: each holds back the readers of its topics."""

    @property
    def problem(self) -> HeadgateError | None:
        """The first thing that is wrong."""
        return next((problem(s, f) for s, f in self.findings if f.reason is not None), None)

    def to_json(self) -> dict[str, Any]:
        """The same for scripts."""
        brokers = [
            {"step": step.id, "address": finding.about, "ok": finding.reason is None,
             "reason": finding.reason.name if finding.reason else None, "text": finding.text}
            for step, finding in self.findings
        ]  # fmt: skip
        return {"brokers": brokers, "open_transactions": list(self.transactions)}


def check_live(built: BuiltJob, spark: SparkSession, job: str) -> LiveCheck:
    """Ask for topics, rights, and transactions that are open."""
    found = tuple(findings(built, spark))
    reached = not any(finding.reason for _, finding in found)
    sinks = [n.operation.sink for n in built.nodes if n.operation.sink is not None]
    open_ = [text for sink in sinks for text in sink.transactions(spark, job)] if reached else []
    return LiveCheck(found, tuple(dict.fromkeys(open_)))


def prepare(built: BuiltJob, spark: SparkSession, *, patient: bool = True) -> Iterator[str]:
    """Raise for a topic that is not there or may not be used, or cannot be made ready for its sink.

    Gives what was changed at the brokers, in sentences. For a `patient` job a broker that does not
    answer is no reason to raise: it may come back, and the job's restart strategy says how long to
    wait for it.
    """
    silent: set[str] = set()
    for step, finding in findings(built, spark):
        if finding.reason in _MAY_COME_BACK and patient:
            if not silent:
                yield f"warning: {finding.text}; the job goes on by its restart strategy"
            silent.add(step.id)
        elif finding.reason is not None:
            raise problem(step, finding)
    for node in built.nodes:
        if (sink := node.operation.sink) is not None and node.step.id not in silent:
            try:
                yield from sink.prepare(spark)
            except HeadgateError as error:
                error.step = error.step or node.step.id
                error.location = error.location or location_of(node.step)
                raise


def problem(step: Step, finding: Finding) -> HeadgateError:
    """A finding as an error that names the step and where it was written."""
    assert finding.reason is not None
    missing = finding.reason is Reason.TOPIC_MISSING
    kind = NotFoundError if missing else HeadgateError
    return kind(
        finding.text,
        code=finding.reason.name,
        step=step.id,
        remedy=missing_topic(finding.about) if missing else finding.reason.remedy,
        location=location_of(step),
    )
