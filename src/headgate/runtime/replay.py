"""Replaying dead letters: each chosen letter to the step that lost it, once."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from headgate.base.errors import NotFoundError, RefusedError, UsageError
from headgate.base.secrets import redact
from headgate.connectors.letters import (
    OUTPUT,
    REPLAYS,
    STEP,
    Letter,
    Replayed,
    can_replay,
    place_of,
    replay_address,
)
from headgate.connectors.topic_client import (
    AppendAll,
    PartitionFacts,
    Retention,
    TopicClient,
    TopicFacts,
)
from headgate.connectors.topics import open_topic
from headgate.graph import Graph
from headgate.home.layout import JobHome
from headgate.home.replays import ReplayRecord, replays, write_replay

CHUNK = 1000
"""How many letters become visible at once."""
_WHY_NOT = {
    "late": "their windows have closed: they would be late again",
    "errors": "a letter has the row as text, which no handler can be given",
}


@dataclass(frozen=True)
class ReplayRequest:
    """Which letters are wanted."""

    address: str
    where: str | None = None
    limit: int | None = None
    again: bool = False
    """Those too that were replayed before."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the broker's client."""


@dataclass(frozen=True)
class ReplayOutcome:
    """What became of a request."""

    id: str | None
    """The replay's; None if there was nothing to do."""
    letters: Mapping[str, int]
    """How many letters go to their step again, by step and output."""
    before: int
    """How many were left out because they were replayed before."""
    left: Mapping[str, str]
    """Letters that cannot be replayed, by step and output, with the reason."""
    resumed: bool = False
    """Whether an earlier command had begun it."""

    @property
    def total(self) -> int:
        """How many letters go to their step again."""
        return sum(self.letters.values())


def replay(
    job: JobHome,
    request: ReplayRequest,
    *,
    dry_run: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> ReplayOutcome:
    """Give dead letters to their steps again.

    1. Be the only one who writes to the topic of replays, and end what a killed command had begun.
    2. Read there which letters were replayed. It is the one record that counts.
    3. Choose letters, and write to the home which: the same command goes on with them.
    4. Append them in chunks, each of which is there or not.
    """
    targets = _Targets.of(job, request.address)
    letters = _existing(request.address, request.options)
    through = _existing(replay_address(request.address), request.options)
    _must_last(replay_address(request.address), through.facts())
    if dry_run:
        return _Replay(job, request, targets, letters, through).chosen().outcome
    with through.alone() as append:
        chosen = _Replay(job, request, targets, letters, through).chosen()
        if chosen.todo:
            write_replay(job, chosen.record)
        _append(chosen, append, say)
        if chosen.todo or chosen.outcome.resumed:
            write_replay(job, chosen.record.ended(chosen.outcome.letters))
        return chosen.outcome


def _append(chosen: _Chosen, append: AppendAll, say: Callable[[str], None]) -> None:
    total = chosen.outcome.total
    for at in range(0, len(chosen.todo), CHUNK):
        chunk = chosen.todo[at : at + CHUNK]
        append([letter.replayed(chosen.record.id) for letter in chunk])
        left = len(chosen.todo) - at - len(chunk)
        if left:
            say(f"{total - left:,} of {total:,} letters")


@dataclass(frozen=True)
class _Targets:
    """The steps of a job's newest run that take letters of a topic again."""

    job: str
    """The job's name in its code, which its letters have."""
    outputs: frozenset[tuple[str, str]]

    @staticmethod
    def of(job: JobHome, address: str) -> _Targets:
        run = job.current()
        if run is None:
            raise NotFoundError(f"job '{job.name}' has not run yet", remedy="start it first")
        graph = Graph.from_json(run.graph())
        wanted = place_of(replay_address(address))
        taken = [
            step.config[REPLAYS]
            for step in graph.steps
            if REPLAYS in step.config and place_of(step.address) == wanted
        ]
        if taken:
            return _Targets(graph.job, frozenset((str(t[STEP]), str(t[OUTPUT])) for t in taken))
        sinks = [s.address for s in graph.steps if s.id == "dead_letters" and s.role == "sink"]
        if place_of(address) not in map(place_of, sinks):
            raise NotFoundError(
                f"job '{job.name}' has no dead letters in {redact(address)}",
                expected=", ".join(sinks) or "a job with dead_letters=...",
                remedy="name their topic as the job does",
            )
        why = "no step of the job can take its letters again"
        if not can_replay(address):
            why = "letters in a Pulsar topic cannot be replayed"
        raise RefusedError(
            why, remedy="letters of sources and lookups can be, from a topic of Kafka or a log"
        )


def _existing(address: str, options: Mapping[str, str]) -> TopicClient:
    topic = open_topic(address, options)
    if not topic.exists():
        raise NotFoundError(
            f"there is no topic at {redact(address)}",
            remedy="start the job with its dead_letters first: it creates the topic",
        )
    return topic


def _must_last(address: str, facts: TopicFacts) -> None:
    """Raise for a topic of replays that forgets which letters were replayed."""
    if facts.retention not in (None, Retention()):
        raise RefusedError(
            f"{redact(address)} must keep its records for ever: they say what was replayed",
            got=f"retention {facts.retention}",
            remedy="let it keep all of them: retention.ms=-1, retention.bytes=-1,"
            " cleanup.policy=delete",
        )
    if any(isinstance(p, PartitionFacts) and p.first_offset > 0 for p in facts.partitions):
        raise RefusedError(
            f"{redact(address)} has lost records, which said what was replayed",
            remedy="give the job another topic of dead letters",
        )


@dataclass(frozen=True)
class _Chosen:
    record: ReplayRecord
    todo: Sequence[Letter]
    outcome: ReplayOutcome


@dataclass(frozen=True)
class _Replay:
    """What is in the topics, and what is chosen of it."""

    job: JobHome
    request: ReplayRequest
    targets: _Targets
    letters: TopicClient
    through: TopicClient

    def chosen(self) -> _Chosen:
        """The letters that are wanted, less those that are out."""
        by_letter = self._replayed()
        resumed = self._begun()
        found = self._found(resumed)
        record = resumed or self._begin(found)
        fit = [x for x in found if (x.step, x.output) in self.targets.outputs]
        new = [x for x in fit if self.request.again or not by_letter[x.mark] - {record.id}]
        chosen = new[: self.request.limit]
        todo = [x for x in chosen if record.id not in by_letter[x.mark]]
        # of one that had begun all letters count, also if no more is to do than to say so
        own = chosen if todo or resumed else []
        outcome = ReplayOutcome(
            record.id if own else None,
            dict(Counter(map(_name, own))),
            len(fit) - len(new) + len(chosen) - len(own),
            {_name(x): self._why_not(x) for x in found if x not in fit},
            resumed is not None,
        )
        return _Chosen(record, todo, outcome)

    def _replayed(self) -> defaultdict[str, set[str]]:
        """By letter, the replays that it was in."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        with closing(self.through.read("earliest")) as records:
            for record in records:
                one = None if record is None else Replayed.of(record)
                if one is not None and one.job == self.targets.job:
                    found[one.letter].add(one.replay)
        return found

    def _begun(self) -> ReplayRecord | None:
        """The newest replay of the same command, if it is not at its end."""
        asked = self.request
        same = [
            record
            for record in replays(self.job)
            if record.is_for(asked.address, asked.where, asked.limit, asked.again)
        ]
        return same[-1] if same and same[-1].ended_at is None else None

    def _begin(self, found: Sequence[Letter]) -> ReplayRecord:
        asked, ends = self.request, dict[int, int]()
        for letter in found:
            ends[letter.partition] = max(ends.get(letter.partition, 0), int(letter.offset) + 1)
        return ReplayRecord.begin(asked.address, asked.where, asked.limit, asked.again, ends)

    def _found(self, resumed: ReplayRecord | None) -> list[Letter]:
        """The job's letters for which the condition is true, in the order of their topic."""
        found = []
        with closing(self.letters.read("earliest")) as records:
            for record in records:
                letter = None if record is None else Letter.of(record)
                if letter is None or letter.job != self.targets.job:
                    continue
                ends = None if resumed is None else resumed.ends.get(letter.partition, 0)
                if ends is None or int(letter.offset) < ends:
                    found.append(letter)
        found.sort(key=lambda letter: (letter.partition, int(letter.offset)))
        return _matching(found, self.request.where)

    def _why_not(self, letter: Letter) -> str:
        known = _WHY_NOT.get(letter.output)
        return known or f"step '{letter.step}' of the job does not take them"


def _name(letter: Letter) -> str:
    return f"{letter.step}.{letter.output}"


def _matching(letters: Sequence[Letter], where: str | None) -> list[Letter]:
    """The letters for which a condition in SQL is true."""
    if where is None:
        return list(letters)
    rows: list[dict[str, Any]] = [letter.row() for letter in letters]
    columns = list(Letter(0, 0, None, None, {"step": ""}).row())
    names = ", ".join(f'"{name}"' for name in columns)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE letters (place INTEGER, {names})")
        database.executemany(
            f"INSERT INTO letters VALUES (?{', ?' * len(columns)})",
            [(place, *row.values()) for place, row in enumerate(rows)],
        )
        try:
            kept = database.execute(f"SELECT place FROM letters WHERE ({where}\n) ORDER BY place")
            return [letters[place] for (place,) in kept]
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise UsageError(
                f"--where must be a condition on the columns of letters: {error}",
                expected=", ".join(columns),
                remedy="write SQL over these columns, for instance \"step = 'users_lookup'\"",
            ) from error
