"""Whether a Pulsar topic is still the one that a query began with, by the time it was made."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.base.errors import HeadgateError
from headgate.base.topic_ids import TopicReplacedError
from headgate.connectors.pulsar.admin import PulsarAdmin
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.ids import START, Place
from headgate.connectors.pulsar.names import PulsarTopicName, address_of


class MadeOnce:
    """Remembers when a topic was made, and asks again when its messages are of other ledgers.

    A ledger's id is never used again, so a topic that took the place of another has only ledgers
    that come after those that were read. Within one ledger there is nothing to ask for.
    """

    def __init__(self, access: PulsarAccess, topic: str) -> None:
        self._access = access
        self._topic = topic
        self._asked = False
        self._created: str | None = None
        self._ledgers: dict[int, int] = {}

    def check(self, places: Mapping[int, Place], lasts: Mapping[int, Place]) -> None:
        """Raise if the topic is another one than that which the query began with.

        `places` are the last messages that were read, `lasts` the last ones that are there.
        """
        if not self._asked:
            self._asked, self._created = True, self._ask()
            self._ledgers = {number: place.ledger for number, place in places.items()}
        if self._created is None:
            return
        ledgers = {number: last.ledger for number, last in lasts.items() if last != START}
        if all(self._ledgers.get(number) == ledger for number, ledger in ledgers.items()):
            return
        now = self._ask()
        if now is not None and now != self._created:
            fields = {
                "address": address_of(self._access.url, self._topic),
                "was": self._created,
                "is": now,
            }
            raise TopicReplacedError(fields)
        self._ledgers.update(ledgers)

    def _ask(self) -> str | None:
        try:
            return PulsarAdmin(self._access).created(PulsarTopicName.parse(self._topic))
        except HeadgateError:  # the REST interface need not be there
            return None
