"""The plan of a start: what becomes of a snapshot's state and positions under another graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headgate.base.errors import RefusedError
from headgate.base.topic_ids import TopicIds
from headgate.failures import Reason
from headgate.graph.formats import config_of
from headgate.graph.kinds import KINDS
from headgate.home.offsets import Offset, Offsets, offset_order, offset_text
from headgate.snapshots.layouts import Layout, compare
from headgate.snapshots.snapshot import Snapshot
from headgate.snapshots.topics import NoTopics, TopicsNow, replaced_text, topics_of

if TYPE_CHECKING:
    from headgate.graph.operation import Operation

Earliest = Callable[[str, bool], Offsets | None]
"""The first offset that a source still has, by partition; nothing if it cannot tell, or if the
snapshot is the newest (the second argument) and the broker keeps all that is not in that one."""

_First = Callable[[str], Offsets | None]


@dataclass(frozen=True)
class Change:
    """One line of a plan: a step or source and what becomes of it."""

    mark: str
    """= kept, ~ changed, + new, - dropped, ! cannot be done."""
    name: str
    text: str
    rows: int | None = None
    note: str = ""
    remedy: str = ""
    """What to do about one that cannot be done, if it is something of its own."""

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "mark": self.mark,
            "name": self.name,
            "text": self.text,
            "rows": self.rows,
            "note": self.note,
        }


@dataclass(frozen=True)
class UpgradePlan:
    """What a start from a snapshot would do."""

    snapshot: str
    steps: tuple[Change, ...]
    sources: tuple[Change, ...]
    rewrites: frozenset[str]
    """Steps whose state is written anew: other columns, or another parallelism."""
    losing: tuple[str, ...]
    """Steps that lose state."""
    begins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Sources that begin elsewhere because records are gone: their topics that were made again."""

    @property
    def lost(self) -> dict[str, str]:
        """Why sources begin elsewhere, in sentences."""
        return {c.name: c.text for c in self.sources if c.name in self.begins}

    @property
    def impossible(self) -> list[Change]:
        """What no flag allows."""
        return [change for change in (*self.steps, *self.sources) if change.mark == "!"]

    @property
    def trivial(self) -> bool:
        """Whether nothing is new, changed or dropped."""
        return all(change.mark == "=" for change in (*self.steps, *self.sources))

    def lines(self) -> list[str]:
        """The plan for people."""
        changes = [*self.steps, *self.sources]
        width = max((len(change.name) for change in changes), default=0)
        texts = [change.text for change in changes]
        wide = max((len(text) for text in texts), default=0)
        lines = []
        for change in changes:
            rows = f"{change.rows:,} rows" if change.rows is not None else ""
            line = f"  {change.mark} {change.name:<{width}}  {change.text:<{wide}}"
            lines.append(f"{line}  {rows:>14}  {change.note}".rstrip())
        return lines

    def refusal(self, *, allow_dropped_state: bool) -> RefusedError | None:
        """Why a start must not be made, if so."""
        shown = "\n".join([f"{self.snapshot} cannot be used as it is:", *self.lines(), ""])
        if impossible := self.impossible:
            what = "; ".join(f"{change.name}: {change.text}" for change in impossible)
            return RefusedError(
                f"{shown}the snapshot does not fit the job: {what}",
                remedy=next((change.remedy for change in impossible if change.remedy), None)
                or "keep names, keys and types as they were; give a changed step or source a "
                "new name; or start from nothing with --fresh",
            )
        if self.losing and not allow_dropped_state:
            names = ", ".join(self.losing)
            return RefusedError(
                f"{shown}state would be lost: {names}",
                remedy="pass --allow-dropped-state to drop it, or keep the steps' names",
            )
        return None

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "snapshot": self.snapshot,
            "steps": [change.to_json() for change in self.steps],
            "sources": [change.to_json() for change in self.sources],
            "losing": list(self.losing),
            "possible": not self.impossible,
        }


NO_TOPICS = NoTopics()
_KEEP = (
    "keep it as it was, or give the step a new name with --allow-dropped-state: the state under "
    "the old name is lost"
)


def plan_upgrade(
    snapshot: Snapshot,
    graph: Mapping[str, Any],
    *,
    parallelism: int,
    earliest: Earliest = lambda source, newest: None,
    newest: bool = False,
    topics: TopicsNow = NO_TOPICS,
) -> UpgradePlan:
    """Compare a snapshot with the graph that would go on from it, step by step and by name.

    `newest` says that the job has committed nothing since.
    """
    old, new = _stateful(snapshot.graph), _stateful(graph)
    rows = _rows(snapshot)
    rescaled = parallelism != snapshot.run.parallelism
    steps: list[Change] = []
    rewrites, losing = set(), []
    for name in [*(n for n in new if n in old), *(n for n in new if n not in old)]:
        if name not in old:
            steps.append(_new(new[name], snapshot.graph))
            continue
        change, rewrite, loses = _kept(name, old[name], new[name], rows.get(name))
        steps.append(change)
        if rewrite or rescaled:
            rewrites.add(name)
        if loses:
            losing.append(name)
    for name in old:
        if name not in new:
            waiting = _waiting(snapshot, name)
            text = f"state dropped{f', {waiting:,} rows that wait in it' if waiting else ''}"
            steps.append(Change("-", name, text, rows.get(name), "needs --allow-dropped-state"))
            losing.append(name)
    if rescaled:
        text = f"{snapshot.run.parallelism} partitions of state become {parallelism}"
        steps.append(Change("~", "parallelism", text))
    places = _Places(snapshot, lambda name: earliest(name, newest), topics)
    sources = tuple(_sources(snapshot, graph, places))
    return UpgradePlan(
        snapshot.name, tuple(steps), sources, frozenset(rewrites), tuple(losing), places.begins
    )


def _rows(snapshot: Snapshot) -> dict[str, int | None]:
    states = snapshot.record.state if snapshot.record else {}
    return {step: sizes.get("rows", 0) + sizes.get("waiting", 0) for step, sizes in states.items()}


def _waiting(snapshot: Snapshot, step: str) -> int:
    states = snapshot.record.state if snapshot.record else {}
    return states.get(step, {}).get("waiting", 0)


def _new(step: Mapping[str, Any], before: Mapping[str, Any]) -> Change:
    """The line of a step that the snapshot does not have."""
    note = _kind(step).note_if_new(config_of(step), before["sources"])
    return Change("+", str(step["id"]), "new state, starts empty", note=note)


def _kept(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any], rows: int | None
) -> tuple[Change, bool, bool]:
    """The line of a step that both graphs have, whether it is rewritten, whether it loses."""
    before, after = layouts_of(old), layouts_of(new)
    if not before or not after:  # written by a version that did not keep layouts
        if old["state_schema"] == new["state_schema"]:
            return Change("=", name, "state unchanged", rows), False, False
        return Change("!", name, "its state has other columns or types", rows), False, False
    found = compare(before, after)
    if old["kind"] != new["kind"]:
        text = f"state does not fit: it was a {old['kind']} and is a {new['kind']}"
        return Change("!", name, text), False, False
    fit = _kind(new).fits(config_of(old), config_of(new), found.gains)
    if conflicts := [*found.conflicts, *fit.conflicts]:
        text = f"state does not fit: {'; '.join(conflicts)}"
        return Change("!", name, text, remedy="" if found.conflicts else _KEEP), False, False
    note = fit.note
    if found.same:
        return Change("~" if note else "=", name, "state unchanged", rows, note), False, False
    parts = []
    if found.gains:
        columns = any(gain.startswith("column ") for gain in found.gains)
        parts.append(f"gains {', '.join(found.gains)}{' (null for old rows)' * columns}")
    if found.loses:
        parts.append(f"loses {', '.join(found.loses)}")
    if found.one_zero:
        parts.append("keys: 0.0 and -0.0 become one, and so do all NaN")
    if not parts:
        what = "places" if found.places else "times"
        parts.append(f"unchanged but for the {what} of its rows")
    note = "; ".join(["needs --allow-dropped-state"] * bool(found.loses) + [note] * bool(note))
    return Change("~", name, f"state {'; '.join(parts)}", rows, note), True, bool(found.loses)


def _kind(step: Mapping[str, Any]) -> type[Operation]:
    """The kind of a step of the new graph: it is known, since the job has been built."""
    return KINDS[str(step["kind"])]


def layouts_of(step: Mapping[str, Any]) -> Sequence[Layout]:
    """The stores of a step of a graph.json."""
    stores: Sequence[Layout] = step.get("stores") or ()
    return stores


def _stateful(graph: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(step["id"]): step for step in graph["steps"] if step["stateful"]}


def _sources(snapshot: Snapshot, graph: Mapping[str, Any], places: _Places) -> Iterator[Change]:
    before, after = _addresses(snapshot.graph), _addresses(graph)
    for name, address in after.items():
        if name not in before:
            yield Change("+", name, f"new source, read from its start ({address})")
        elif before[name] != address and not places.same_topics(name):
            yield Change(
                "!", name, f"now reads {address} instead of {before[name]}, where the snapshot's "
                "offsets mean nothing",
            )  # fmt: skip
        else:
            yield places.of(name)
    for name in before:
        if name not in after:
            yield Change("-", name, "source is not read any more")


class _Places:
    """Where each source goes on, and whether what it wants is there."""

    def __init__(self, snapshot: Snapshot, earliest: _First, topics: TopicsNow) -> None:
        self._record = snapshot.record
        self._known = topics_of(snapshot)
        self._earliest = earliest
        self._topics = topics
        self._now: dict[str, TopicIds | None] = {}
        self.begins: dict[str, tuple[str, ...]] = {}

    def same_topics(self, name: str) -> bool:
        """Whether a source reads the same topics under another address, such as other servers."""
        known, now = self._known.get(name), self._ids(name)
        return known is not None and now is not None and known.same(now)

    def _ids(self, name: str) -> TopicIds | None:
        if name not in self._now:
            self._now[name] = self._topics.ids(name)
        return self._now[name]

    def of(self, name: str) -> Change:
        """The line of a source that goes on."""
        now = self._ids(name) if name in self._known else None
        if now is not None and (replaced := self._known[name].replaced(now)):
            text = replaced_text(name, replaced)
            if not self._topics.may_lose(name):
                return Change("!", name, text, remedy=Reason.TOPIC_REPLACED.remedy)
            self.begins[name] = replaced
            return Change("~", name, f"{text}: read from the beginning (on_data_loss='continue')")
        offsets = self._record.sources.get(name) if self._record else None
        if offsets is None:
            return Change("=", name, "goes on where the snapshot was")
        at = ", ".join(f"partition {part} offset {place}" for part, place in offsets.places())
        at = at or "its start"
        gone = {
            part: first
            for part, first in (self._earliest(name) or {}).items()
            if _is_gone(offsets.end.get(part), first)
        }
        return self._without(name, at, gone, offsets.end) if gone else _resumes(name, at)

    def _without(self, name: str, at: str, gone: Offsets, end: Offsets) -> Change:
        """The line of a source whose records are gone from where it goes on."""
        part, first = min(gone.items(), key=lambda item: item[0])
        begins = f"the topic begins at offset {offset_text(first)} of partition {part}"
        if not self._topics.may_lose(name):
            return Change(
                "!", name, f"resumes at {at}, but {begins}: records between are gone",
                remedy="take a newer snapshot, go on without the records with "
                "on_data_loss='continue' of the source (Kafka, Pulsar), or start from nothing "
                "with --fresh",
            )  # fmt: skip
        self.begins[name] = ()
        counts = [n - _number(end.get(part)) for part, n in gone.items() if isinstance(n, int)]
        many = f"{sum(counts):,} offsets" if counts else "records"
        return Change(
            "~", name, f"was at {at}, and {begins}: {many} between are gone, and it goes on "
            "without them (on_data_loss='continue')",
        )  # fmt: skip


def _resumes(name: str, at: str) -> Change:
    return Change("=", name, f"resumes at {at}")


def _number(offset: Offset | None) -> int:
    return offset if isinstance(offset, int) else 0


def _is_gone(end: Offset | None, first: Offset) -> bool:
    """Whether there are no records any more where a snapshot ended.

    Ids of messages do not say whether something was there before the first one, so a snapshot
    that has read nothing of such a partition misses nothing.
    """
    if isinstance(first, int):
        return offset_order(first) > offset_order(end or 0)
    return end is not None and offset_order(end) >= (0,) and offset_order(first) > offset_order(end)


def _addresses(graph: Mapping[str, Any]) -> dict[str, str]:
    """The user's sources and tables, and where they read."""
    sources = set(graph["sources"])
    return {
        str(step["id"]): str(step["address"]) for step in graph["steps"] if step["id"] in sources
    }
