"""A message's place in a partition of a Pulsar topic: ledger, entry, and number in its batch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from headgate.base.errors import GraphError
from headgate.failures.places import register_place

if TYPE_CHECKING:
    import pulsar

_FORM = re.compile(r"(-?\d+):(-?\d+)(?::(-?\d+))?")
_ENTRY_BITS, _BATCH_BITS = 20, 14
_END_OF_ENTRY = 2**31 - 1


class Place(NamedTuple):
    """Places sort as the messages stand in the partition.

    An entry is what a producer sent at once: one message (batch -1) or several (0, 1, ...).

    >>> Place.parse("12:3:1") < Place.parse("12:3:2") < Place.parse("12:10")
    True
    """

    ledger: int
    entry: int
    batch: int = -1

    @staticmethod
    def parse(text: str) -> Place:
        """Read `ledger:entry` or `ledger:entry:batch`."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise GraphError(
                "the id of a Pulsar message must be ledger:entry or ledger:entry:batch, for "
                "example '12:3:0'",
                got=repr(text),
                remedy="see the ids with headgate topic read",
            )
        return Place(int(found[1]), int(found[2]), int(found[3] or -1))

    @staticmethod
    def of(id: pulsar.MessageId) -> Place:
        """Where a message is that a client gave."""
        return Place(id.ledger_id(), id.entry_id(), id.batch_index())

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}:{self.batch}"

    @property
    def in_entry(self) -> tuple[int, int]:
        """The ledger and entry, which all messages of a batch share."""
        return self.ledger, self.entry

    def before(self) -> Place:
        """The place behind which reading has to begin for this message to be the first.

        >>> Place(12, 3, 4).before(), Place(12, 2, 99) < Place(12, 3).before() < Place(12, 3)
        (Place(ledger=12, entry=3, batch=3), True)
        """
        if self.batch > 0:
            return Place(self.ledger, self.entry, self.batch - 1)
        return Place(self.ledger, self.entry - 1, _END_OF_ENTRY)

    def id(self, partition: int) -> pulsar.MessageId:
        """The same for Pulsar's client."""
        import pulsar

        if self == START:
            return pulsar.MessageId.earliest
        batch = -1 if self.batch == _END_OF_ENTRY else self.batch
        return pulsar.MessageId(partition, self.ledger, self.entry, batch)


START = Place(-1, -1, -1)
"""Before the first message; also where an empty partition ends."""


def to_number(ledger: int, entry: int, batch: int) -> int:
    """A place as one number, for columns that hold the offset of a record.

    >>> from_number(to_number(12, 3, 1))
    Place(ledger=12, entry=3, batch=1)
    """
    return (ledger << _ENTRY_BITS | entry) << _BATCH_BITS | max(batch, 0)


def from_number(number: int) -> Place:
    """The place of such a number; a message without a batch counts as the first of one."""
    entry, batch = number >> _BATCH_BITS, number & (1 << _BATCH_BITS) - 1
    return Place(entry >> _ENTRY_BITS, entry & (1 << _ENTRY_BITS) - 1, batch)


register_place("pulsar", lambda number: f"message {from_number(number)}")
