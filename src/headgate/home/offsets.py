"""Offsets of sources, numbers or ids of messages, and how far a checkpoint read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from headgate.base.topic_ids import TopicIds

Offset: TypeAlias = int | str
"""A number, or the id of a message: ``"12:3:0"``, ledger, entry and place in its batch (Pulsar)."""

Offsets: TypeAlias = Mapping[str, Offset]
"""An offset by partition: ``{"0": 100}``."""


def offset_order(offset: Offset) -> tuple[int, ...]:
    """What offsets of one partition sort by.

    >>> offset_order(9) < offset_order(10), offset_order("12:9:0") < offset_order("12:10:-1")
    (True, True)
    """
    return (offset,) if isinstance(offset, int) else tuple(int(n) for n in offset.split(":"))


def offset_text(offset: Offset) -> str:
    """An offset for people.

    >>> offset_text(12000), offset_text("12:3:0")
    ('12,000', '12:3:0')
    """
    return f"{offset:,}" if isinstance(offset, int) else offset


@dataclass(frozen=True)
class SourceOffsets:
    """How far a checkpoint read one source."""

    start: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)
    latest: Offsets = field(default_factory=dict)
    ids: TopicIds | None = None
    """The topics that the offsets are of, if their broker gives them ids."""

    def behind(self) -> int:
        """Records that were there when the checkpoint was cut but are not in it.

        Ids of messages do not say how many are between them: then 0.
        """
        pairs = [(n, self.end.get(part, 0)) for part, n in self.latest.items()]
        return sum(
            max(0, n - end) for n, end in pairs if isinstance(n, int) and isinstance(end, int)
        )

    def places(self) -> list[tuple[str, str]]:
        """Where the checkpoint ends: partitions in their order, with offsets for people."""
        in_order = sorted(self.end.items(), key=lambda item: (len(item[0]), item[0]))
        return [(part, offset_text(offset)) for part, offset in in_order]

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        offsets = {"start": self.start, "end": self.end, "latest": self.latest}
        return {
            **{name: dict(of) for name, of in offsets.items()},
            **(self.ids.to_json() if self.ids else {}),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> SourceOffsets:
        """From what its file holds."""
        return SourceOffsets(
            dict(data.get("start") or {}),
            dict(data.get("end") or {}),
            dict(data.get("latest") or {}),
            TopicIds.from_json(data),
        )
