"""Which broker and topic a failure is about, where Spark's Kafka source does not say it.

What Spark says of a broker that is gone or slow names neither: "Cannot fetch record for offset 17
in 60000 milliseconds". The job knows which topics it reads, and a probe which broker is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headgate.connectors.base import Source
from headgate.connectors.broker_probe import Service
from headgate.failures import Failure, Reason

if TYPE_CHECKING:
    from headgate.graph.plan import BuiltJob
from headgate.runtime.services import connectors_of

_PROBE_SECONDS = 2.0
_ABOUT_BROKERS = (Reason.BROKER_UNREACHABLE, Reason.FETCH_TIMEOUT)


@dataclass(frozen=True)
class Read:
    """A topic that a job reads from Kafka."""

    step: str
    address: str
    service: Service


def kafka_reads(built: BuiltJob) -> list[Read]:
    """All that a job reads from Kafka; a topic may also be a sink, which is no reading."""
    reading = {step.id for step in built.graph.steps if step.role in ("source", "table")}
    found = []
    for step, connector in connectors_of(built):
        reads = (
            step in reading and isinstance(connector, Source) and connector.client_names_no_topic
        )
        service = Service.of(connector) if reads else None
        if service is not None:
            found.append(Read(step, connector.describe(), service))
    return found


def name_broker(
    failure: Failure,
    reads: Sequence[Read],
    answers: Callable[[Service], bool] = lambda service: service.answers(_PROBE_SECONDS),
) -> Failure:
    """The failure with the topic and broker that it is about, if it lacks them.

    >>> read = Read("orders", "kafka://h:1/o", Service("kafka", ("h:1",)))
    >>> slow = Failure(Reason.FETCH_TIMEOUT, f"{Reason.FETCH_TIMEOUT.text}: Cannot fetch")
    >>> name_broker(slow, [read], lambda service: False).sentence
    'the broker does not answer (kafka://h:1/o of orders): Cannot fetch'
    """
    named = failure.sentence.startswith(f"{failure.reason.text} (")
    if failure.reason not in _ABOUT_BROKERS or named or not reads:
        return failure
    alive = {service: answers(service) for service in {read.service for read in reads}}
    silent = [read for read in reads if not alive[read.service]]
    about = silent or list(reads)
    reason = Reason.BROKER_UNREACHABLE if silent else failure.reason
    said = failure.sentence.removeprefix(failure.reason.text).removeprefix(": ")
    where = ", ".join(f"{read.address} of {read.step}" for read in about)
    one_of = "one of " if len(about) > 1 and not silent else ""
    text = reason.text
    if not silent and reason is Reason.BROKER_UNREACHABLE:
        text = "the broker did not answer, and does again"
    return replace(
        failure,
        reason=reason,
        sentence=f"{text} ({one_of}{where})" + (f": {said}" if said else ""),
        step=failure.step or (about[0].step if len(about) == 1 else None),
    )
