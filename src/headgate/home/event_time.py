"""The event time of a checkpoint: watermarks, rows that wait, why the job's stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from headgate.base.durations import format_duration
from headgate.home.times import from_iso, from_ms, to_iso, to_ms

ShowTime = Callable[[datetime], str]
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True)
class SourceTime:
    """How far a source's event time is, and since when it is silent."""

    watermark: datetime | None = None
    """The newest time of its rows less the disorder that it may have."""
    rows_at: datetime | None = None
    """When the last batch with rows of it began."""
    since: datetime | None = None
    """Where its silence is counted from: rows_at, or the first batch that it was part of."""
    idle_after: timedelta | None = None
    idle_since: datetime | None = None

    @property
    def state(self) -> str:
        """idle, no_rows_yet, no_event_time_yet or active."""
        if self.idle_since is not None:
            return "idle"
        if self.watermark is not None:
            return "active"
        return "no_rows_yet" if self.rows_at is None else "no_event_time_yet"

    def text(self, show: ShowTime) -> str:
        """What is to be said of it beside its watermark."""
        if self.idle_since is not None:
            return f"idle since {show(self.idle_since)}"
        return "" if self.watermark else self.state.replace("_", " ")

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "watermark": to_iso(self.watermark),
            "state": self.state,
            "rows_at": to_iso(self.rows_at),
            "since": to_iso(self.since),
            "idle_after_ms": self.idle_after // _MS if self.idle_after else None,
            "idle_since": to_iso(self.idle_since),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> SourceTime:
        """From what its file holds."""
        after = data.get("idle_after_ms")
        return SourceTime(
            from_iso(data.get("watermark")),
            from_iso(data.get("rows_at")),
            from_iso(data.get("since")),
            after * _MS if after is not None else None,
            from_iso(data.get("idle_since")),
        )


@dataclass(frozen=True)
class WaitingTime:
    """The rows that wait in a step, and how far they let the watermark go."""

    rows: int
    least: datetime | None = None
    """The event time of the first of them; none if all came behind the watermark."""
    until: datetime | None = None
    """When that one leaves at the latest."""

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {"rows": self.rows, "least": to_iso(self.least), "until": to_iso(self.until)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> WaitingTime:
        """From what its file holds."""
        return WaitingTime(data["rows"], from_iso(data.get("least")), from_iso(data.get("until")))


@dataclass(frozen=True)
class EventTimeRecord:
    """The event time of a job after a checkpoint; the next start goes on with it."""

    at: datetime
    """The batch's time."""
    next: datetime | None = None
    """The watermark that the next batch has, if no source becomes idle before it."""
    ended: bool = False
    """Whether a drain has ended event time."""
    sources: Mapping[str, SourceTime] = field(default_factory=dict)
    waiting: Mapping[str, WaitingTime] = field(default_factory=dict)
    """By step, the rows that wait in it and hold the watermark."""

    def _of_sources(self) -> datetime | None:
        """The watermark that the sources alone would make."""
        counting = [s.watermark for s in self.sources.values() if s.state != "idle"]
        if not counting:
            return max((s.watermark for s in self.sources.values() if s.watermark), default=None)
        known = [mark for mark in counting if mark is not None]
        return min(known) if len(known) == len(counting) else None

    def held_by_waiting(self) -> str | None:
        """The step whose waiting rows keep the job's watermark where it is."""
        held = {step: w.least for step, w in self.waiting.items() if w.least is not None}
        mark = self._of_sources()
        if self.ended or not held or mark is None or min(held.values()) >= mark:
            return None
        return min(held, key=lambda step: held[step])

    def holder(self) -> tuple[str, timedelta | None] | None:
        """The source that keeps the job's watermark where it is, and by how much.

        Nothing if it is not one source: all are idle, event time has ended, or there is only one.
        """
        counting = {name: s for name, s in self.sources.items() if s.state != "idle"}
        if self.ended or not counting or self.held_by_waiting():
            return None
        for name, source in counting.items():
            if source.watermark is None:
                return name, None
        name, mark = min(
            ((n, s.watermark) for n, s in counting.items() if s.watermark), key=lambda x: x[1]
        )
        rest = [s.watermark for n, s in counting.items() if s.watermark and n != name]
        ahead = max(filter(None, [min(rest, default=None), self.next]), default=mark)
        return (name, ahead - mark) if ahead > mark else None

    def reason(self, show: ShowTime = lambda when: str(to_iso(when))) -> str | None:
        """Why the job's watermark stands still, in words; nothing if it follows its sources."""
        if self.ended:
            return "event time was ended by a drain"
        if step := self.held_by_waiting():
            waits = self.waiting[step]
            what = "1 row that waits" if waits.rows == 1 else f"{waits.rows:,} rows that wait"
            until = f", until {show(waits.until)}" if waits.until else ""
            return f"held by {what} in {step}{until}"
        if self.sources and all(s.state == "idle" for s in self.sources.values()):
            since = max(s.idle_since for s in self.sources.values() if s.idle_since)
            what = "all sources are" if len(self.sources) > 1 else "the source is"
            return f"{what} idle since {show(since)}"
        held = self.holder()
        if held is None:
            return None
        name, by = held
        if by is None:
            return f"{self.sources[name].text(show)} from source '{name}'"
        return f"source '{name}' holds it back by {format_duration(by)}"

    def advice(self, show: ShowTime = lambda when: str(to_iso(when))) -> str | None:
        """What to do about a silent source that stops the watermark of the whole job."""
        held = self.holder()
        if held is None or self.sources[held[0]].idle_after is not None:
            return None
        name, source = held[0], self.sources[held[0]]
        others = [s.rows_at for n, s in self.sources.items() if n != name and s.rows_at]
        if not others or (source.rows_at is not None and source.rows_at >= max(others)):
            return None
        silence = f"since {show(source.rows_at)}" if source.rows_at else "yet"
        return (
            f"source '{name}' has had no rows {silence}, and without idle_after all windows wait "
            f"for it; if it may be silent, set idle_after: "
            f'hg.event_time(..., idle_after="1 minute")'
        )

    def only(self, sources: Iterable[str]) -> EventTimeRecord:
        """The same for a job that has some of the sources."""
        kept = set(sources)
        return replace(
            self,
            sources={n: s for n, s in self.sources.items() if n in kept},
            waiting={n: w for n, w in self.waiting.items() if n in kept},
        )

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        held = self.holder()
        return {
            "at": to_iso(self.at),
            "next": to_iso(self.next),
            "ended": self.ended,
            "held_by": held[0] if held else None,
            "held_back_ms": held[1] // _MS if held and held[1] is not None else None,
            "held_by_waiting": self.held_by_waiting(),
            "reason": self.reason(),
            "sources": {name: source.to_json() for name, source in self.sources.items()},
            "waiting": {step: waits.to_json() for step, waits in self.waiting.items()},
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> EventTimeRecord:
        """From what its file holds."""
        at = from_iso(data["at"])
        assert at is not None
        return EventTimeRecord(
            at,
            from_iso(data.get("next")),
            bool(data.get("ended")),
            {name: SourceTime.from_json(s) for name, s in (data.get("sources") or {}).items()},
            {step: WaitingTime.from_json(w) for step, w in (data.get("waiting") or {}).items()},
        )

    @staticmethod
    def from_journal(data: Mapping[str, Any]) -> EventTimeRecord:
        """From what the kernel has written: numbers in milliseconds since 1970."""
        sources = {
            name: SourceTime(
                from_ms(s.get("watermark")),
                from_ms(s.get("rows_at")),
                from_ms(s.get("since")),
                s["idle_after"] * _MS if s.get("idle_after") is not None else None,
                from_ms(s.get("idle_since")),
            )
            for name, s in data["sources"].items()
        }
        waiting = {
            step: WaitingTime(w["rows"], from_ms(w.get("least")), from_ms(w.get("until")))
            for step, w in (data.get("waiting") or {}).items()
        }
        at = from_ms(data["at"])
        assert at is not None
        ended = bool(data.get("ended"))
        return EventTimeRecord(at, from_ms(data.get("next")), ended, sources, waiting)

    def to_kernel(self) -> dict[str, Any]:
        """What the kernel gets when the job is started again."""
        return {
            "at": to_ms(self.at),
            "sources": {
                name: {
                    "watermark": to_ms(s.watermark),
                    "rows_at": to_ms(s.rows_at),
                    "since": to_ms(s.since),
                }
                for name, s in self.sources.items()
            },
            "waiting": {
                step: {"rows": w.rows, "least": to_ms(w.least), "until": to_ms(w.until)}
                for step, w in self.waiting.items()
            },
        }
