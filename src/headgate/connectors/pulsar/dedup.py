"""Seeing to it that a Pulsar topic drops messages that are sent twice."""

from __future__ import annotations

import time

from headgate.base.errors import HeadgateError, NotFoundError
from headgate.connectors.pulsar.admin import PulsarAdmin
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.names import PulsarTopicName, address_of
from headgate.failures import Reason

_CURSOR = "pulsar.dedup"
_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.1


def ensure_deduplication(access: PulsarAccess, topic: PulsarTopicName) -> list[str]:
    """Switch deduplication on for a topic if it is off, and wait until it works; what was done.

    Raises if it is off and cannot be switched on, or if that cannot be found out.
    """
    admin = PulsarAdmin(access)
    address = address_of(access.url, topic)
    try:
        if admin.deduplication(topic):
            return []
    except NotFoundError:
        raise
    except HeadgateError as error:
        raise HeadgateError(
            f"cannot find out whether {address} drops duplicates ({error.message}), and its sink "
            "must be exactly once",
            code="DEDUPLICATION_OFF",
            remedy="name the REST interface with admin_url, give the job's role access, or set "
            "delivery='at_least_once'",
        ) from error
    try:
        admin.set_deduplication(topic, True)
        _await(admin, topic)
    except HeadgateError as error:
        raise _refused(f"{address} does not drop duplicates", error) from error
    return [f"deduplication was off and is on now for {address}: its sink is exactly once"]


def _await(admin: PulsarAdmin, topic: PulsarTopicName) -> None:
    """Wait for every partition's cursor: what is sent before that is not remembered."""
    count = admin.partitions(topic)
    parts = [topic.partition(n) for n in range(count)] if count else [topic]
    until = time.monotonic() + _PATIENCE_SECONDS
    while parts := [part for part in parts if not _is_on(admin, part)]:
        if time.monotonic() > until:
            raise HeadgateError(
                f"it was switched on, but does not work for {parts[0].short} yet",
                code="DEDUPLICATION_OFF",
                remedy="try again in a moment",
            )
        time.sleep(_POLL_SECONDS)


def _is_on(admin: PulsarAdmin, part: PulsarTopicName) -> bool:
    return _CURSOR in admin.internal(part).get("cursors", {})


def _refused(what: str, why: HeadgateError) -> HeadgateError:
    return HeadgateError(
        f"{what} ({why.message}), and its sink must be exactly once",
        code="DEDUPLICATION_OFF",
        remedy=Reason.DEDUPLICATION_OFF.remedy,
    )
