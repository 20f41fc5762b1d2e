"""The ids of the topics that a source reads: a name may belong to another topic tomorrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.base.coded import CodedFailure


@dataclass(frozen=True)
class TopicIds:
    """Ids by topic, and the cluster that they are in if it has an id.

    >>> then = TopicIds("c1", {"orders": "a", "users": "b"})
    >>> then.replaced(TopicIds("c1", {"orders": "z", "users": "b", "new": "c"}))
    ('orders',)
    >>> then.replaced(TopicIds("c2", {"users": "b"}))
    ('users',)
    """

    cluster: str | None = None
    topics: Mapping[str, str] = field(default_factory=dict)

    def replaced(self, now: TopicIds) -> tuple[str, ...]:
        """The topics whose names belong to others now; what is not there now is none of them."""
        moved = None not in (self.cluster, now.cluster) and self.cluster != now.cluster
        return tuple(
            sorted(
                topic
                for topic, id in self.topics.items()
                if topic in now.topics and (moved or now.topics[topic] != id)
            )
        )

    def same(self, now: TopicIds) -> bool:
        """Whether all topics of before are there now, under their ids."""
        return set(self.topics) <= set(now.topics) and not self.replaced(now)

    def with_new(self, now: TopicIds) -> TopicIds:
        """These ids, and those of topics that are new; what was known stays as it was."""
        return TopicIds(self.cluster or now.cluster, {**now.topics, **self.topics})

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {"cluster": self.cluster, "topics": dict(self.topics)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> TopicIds | None:
        """From what its file holds; nothing if that is no id."""
        if data.get("topics") is None:
            return None
        return TopicIds(data.get("cluster"), {str(t): str(i) for t, i in data["topics"].items()})


class TopicReplacedError(CodedFailure):
    """A topic took the place of the one that a source has read; the kernel says the same.

    Its fields are the address, the id that it had (was) and has (is), and the step if it is known.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__("TOPIC_REPLACED", fields)
