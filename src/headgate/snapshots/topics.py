"""Which topics a run reads, by id: ``topics.json``, and what has become of them since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from headgate.base.errors import RefusedError
from headgate.base.topic_ids import TopicIds
from headgate.failures import Reason
from headgate.home.files import Files, read_json, write_json
from headgate.home.layout import RunHome
from headgate.home.versions import VERSION, check_version
from headgate.snapshots.snapshot import Snapshot

Known = Mapping[str, TopicIds]
"""Ids by source."""


class TopicsNow(Protocol):
    """What the sources of a job say of their topics."""

    def ids(self, source: str) -> TopicIds | None:
        """The ids that its topics have now; nothing if it has none, or nobody answers."""

    def may_lose(self, source: str) -> bool:
        """Whether it goes on although records are gone (on_data_loss)."""

    def begin(self, source: str, line: str, topics: Sequence[str]) -> str:
        """A line of Spark's offset log, with these topics at their beginning.

        In its other topics, partitions whose records are gone are at the first that is there.
        """


class NoTopics:
    """Sources that know no ids."""

    def ids(self, source: str) -> TopicIds | None:
        """Nothing."""
        return None

    def may_lose(self, source: str) -> bool:
        """Never."""
        return False

    def begin(self, source: str, line: str, topics: Sequence[str]) -> str:
        """As it was."""
        return line


def topics_file(run: RunHome) -> str:
    """Where a run's ids are, relative to the home."""
    return f"{run.path}/topics.json"


def read_topics(run: RunHome) -> dict[str, TopicIds]:
    """The ids of the topics that a run reads; none for one of a version that did not keep them."""
    return _read(run.files, topics_file(run))


def _read(files: Files, path: str) -> dict[str, TopicIds]:
    data = read_json(files, path)
    if data is None:
        return {}
    check_version(data, "topics.json")
    found = {str(name): TopicIds.from_json(ids) for name, ids in data["sources"].items()}
    return {name: ids for name, ids in found.items() if ids is not None}


def write_topics(run: RunHome, known: Known) -> None:
    """Keep them, before the first batch that relies on them."""
    write_json(run.files, topics_file(run), topics_json(known))


def topics_json(known: Known) -> dict[str, object]:
    """As they stand in the file."""
    return {
        "version": VERSION,
        "sources": {name: ids.to_json() for name, ids in sorted(known.items())},
    }


def topics_of(snapshot: Snapshot) -> dict[str, TopicIds]:
    """The ids of the topics that a snapshot's offsets are of."""
    beside = f"{snapshot.root}/topics.json" if snapshot.root else "topics.json"
    sources = snapshot.record.sources if snapshot.record else {}
    recorded = {name: offsets.ids for name, offsets in sources.items()}
    return {
        # a run never changes the ids that it has, so they are those of its older checkpoints, too
        **_read(snapshot.files, beside),
        **{name: ids for name, ids in recorded.items() if ids is not None},
    }


def replaced_topics(
    known: Known, sources: Iterable[str], now: TopicsNow
) -> dict[str, tuple[str, ...]]:
    """By source, the topics whose names belong to other topics now."""
    found = {}
    for source in dict.fromkeys(sources):
        ids = now.ids(source) if source in known else None
        if ids is not None and (topics := known[source].replaced(ids)):
            found[source] = topics
    return found


def refuse_replaced(replaced: Mapping[str, Sequence[str]], now: TopicsNow) -> None:
    """Raise unless every source may lose records."""
    for source, topics in replaced.items():
        if not now.may_lose(source):
            raise RefusedError(
                replaced_text(source, topics), step=source, remedy=Reason.TOPIC_REPLACED.remedy
            )


def replaced_text(source: str, topics: Sequence[str]) -> str:
    """What has happened, in a sentence."""
    many = len(topics) > 1
    return (
        f"the topic{'s' * many} {', '.join(topics)} {'were' if many else 'was'} deleted and "
        f"recreated, and the offsets of source '{source}' belong to the old one{'s' * many}"
    )
