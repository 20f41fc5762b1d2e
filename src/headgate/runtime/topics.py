"""The topics of a run's sources: kept by id before its first batch, compared at every start."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headgate.base.topic_ids import TopicIds, TopicReplacedError
from headgate.connectors.base import Source
from headgate.failures import Reason
from headgate.home.layout import RunHome
from headgate.runtime.supervisor import Ended
from headgate.snapshots.topics import (
    read_topics,
    replaced_topics,
    topics_file,
    topics_json,
    write_topics,
)

if TYPE_CHECKING:
    from headgate.compile import CompiledJob
    from headgate.runtime.drive import Drive


_ANSWER_SECONDS = 2.0
_SILENCE_SECONDS = 30.0
# Failures that a topic which is deleted and made again under a running query may look like.
_LIKE_REPLACED = (
    Reason.OFFSET_GONE, Reason.TOPIC_MISSING, Reason.KAFKA, Reason.PULSAR, Reason.UNKNOWN,
)  # fmt: skip


def named_replaced(drive: Drive, ended: Ended) -> Ended:
    """How a query ended, with a topic that was made again named as the reason if it is one."""
    from headgate import jvm

    error = ended.error
    if error is None or jvm.explain_failure(error).reason not in _LIKE_REPLACED:
        return ended
    try:
        drive.check()
    except TopicReplacedError as replaced:
        replaced.__cause__ = error
        return Ended(ended.how, replaced)
    except Exception:  # nobody can tell: what the query said stands
        pass
    return ended


class JobTopics:
    """Asks the sources of a compiled job; a TopicsNow.

    A start asks several times in a row, so that an answer holds for a moment, and silence for
    longer: it takes a quarter of a minute to find out that a broker does not answer.
    """

    def __init__(self, compiled: CompiledJob) -> None:
        self._spark = compiled.frame.sparkSession
        self._answers: dict[str, tuple[float, TopicIds | None]] = {}
        self._sources = {
            name: source
            for name, source in compiled.sources.items()
            if isinstance(source, Source) and name in compiled.graph.sources
        }

    def ids(self, source: str) -> TopicIds | None:
        """The ids that a source's topics have now, if it can tell."""
        found = self._sources.get(source)
        if found is None:
            return None
        at, ids = self._answers.get(source, (-math.inf, None))
        if time.monotonic() - at > (_SILENCE_SECONDS if ids is None else _ANSWER_SECONDS):
            ids = found.topic_ids(self._spark)
            self._answers[source] = (time.monotonic(), ids)
        return ids

    def may_lose(self, source: str) -> bool:
        """Whether a source goes on although records are gone."""
        found = self._sources.get(source)
        return found is not None and found.may_lose

    def begin(self, source: str, line: str, topics: Sequence[str]) -> str:
        """A line of Spark's offset log, with these topics at their beginning."""
        return self._sources[source].begin(self._spark, line, topics)

    def keep(self, run: RunHome) -> None:
        """Write down ids that the run does not have yet, and let the kernel guard them."""
        from headgate import jvm

        before = read_topics(run)
        known = dict(before)
        for name in self._sources:
            if (now := self.ids(name)) is not None:
                known[name] = known[name].with_new(now) if name in known else now
        if known != before:
            write_topics(run, known)
        guarded: dict[str, Any] = {
            name: fields
            for name, source in self._sources.items()
            if (fields := source.guarded()) is not None
        }
        if guarded:
            jvm.need_kafka(self._spark)
            jvm.guard_topics(
                self._spark,
                spark_folder=run.spark,
                file=run.files.location(topics_file(run)),
                sources=guarded,
                known=topics_json(known),
            )

    def replaced(self, run: RunHome) -> dict[str, tuple[str, ...]]:
        """By source, the topics of a run whose names belong to other topics now."""
        return replaced_topics(read_topics(run), self._sources, self)

    def check(self, run: RunHome) -> None:
        """Raise, as the kernel would, if a topic is another one than that which the run has read.

        A query that starts again runs a pending batch from offsets that are written already.
        """
        self._answers = {
            name: fields for name, fields in self._answers.items() if fields[1] is None
        }
        for source, topics in self.replaced(run).items():
            was, now = read_topics(run)[source].topics, self.ids(source)
            topic = topics[0]
            fields = {
                "step": source,
                "address": f"topic {topic} of {self._sources[source].describe()}",
                "was": was[topic],
                "is": now.topics.get(topic) if now else None,
            }
            raise TopicReplacedError(fields)
