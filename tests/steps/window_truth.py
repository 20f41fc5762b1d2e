"""Windows in plain Python: what a window step must give, told the watermark of each batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

NEVER, ENDED = float("-inf"), float("inf")
START = 1_700_000_000 // 3600 * 3600
"""Where the seconds of events are counted from; windows are counted from 1970."""
Event = tuple[int, str, float | None, int | None]
"""id, key, event time in seconds, value"""
Result = tuple[Any, ...]
"""A row of a window: key, start, end, the aggregates, fired_by, pane."""


def totals(rows: Sequence[Event]) -> tuple[Any, ...]:
    """The aggregates n, total and names of some rows."""
    values = [value for *_, value in rows if value is not None]
    names = tuple(sorted({f"v{value % 5}" for value in values}))
    return len(rows), sum(values) if values else None, names


@dataclass
class Open:
    """A key and window."""

    start: float
    rows: list[Event] = field(default_factory=list)
    since: int = 0
    pane: int = 0
    on_time: bool = False
    met: set[int] = field(default_factory=set)


@dataclass
class Truth:
    """Windows over events that come in batches; times are in seconds.

    Windows are of one `size` and begin every `slide`, or are sessions that a gap of `size` ends.
    """

    size: int
    delay: int
    session: bool = False
    slide: int = 0
    offset: int = 0
    lateness: int = 0
    every: int = 0
    after: int = 0
    conditions: Sequence[tuple[Callable[[Sequence[Event]], bool], bool]] = ()
    discarding: bool = False
    clock: int = 0
    processing: bool = False
    evaluate: Callable[[Sequence[Event]], tuple[Any, ...]] = totals
    windows: dict[tuple[str, float], Open] = field(default_factory=dict)
    newest: float = NEVER
    before: float = NEVER
    tick: float | None = None
    came: dict[int, int] = field(default_factory=dict)
    """The order in which events came, by their ids."""
    out: list[Result] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def ends(self, at: float) -> list[int]:
        time = math.floor(at)  # windows begin and end with a second
        slide = self.slide or self.size
        shift = self.offset - START
        last = (time - shift) // slide * slide + shift + self.size
        return [end for end in range(last, time, -slide) if end - self.size <= time < end]

    def batch(self, events: Sequence[Event], *, ended: bool = False, at: float = 0) -> None:
        """One batch; its watermark is of the batches before it, `at` its processing time."""
        for event in events:
            self.came[event[0]] = len(self.came)
        if self.processing:  # as if all its rows had that time, and nothing before could come
            time = round(at - START, 3)
            events = [(id, key, time, value) for id, key, _, value in events]
            self.newest, self.delay = max(self.newest, time), 0
        # a row at the very end of a session is in it, so that ends when the watermark is beyond
        behind = 1e-6 if self.session else 0
        now = ENDED if ended else max(self.newest - self.delay - behind, self.before)
        touched = (self._sessions if self.session else self._fixed)(events)
        times = [event[2] for event in events if event[2] is not None]
        self.newest = max([self.newest, *times])
        reached = ENDED if self._ticked(at) else self._reached(now)
        for key, end in touched:
            window = self.windows[key, end]
            if end <= self.before:
                self._fire(key, end, "late" if window.on_time else "on_time")
            else:
                self._early(key, end, reached, closing=end <= now)
        for (key, end), window in self.windows.items():
            if end > now and window.start < reached and window.since:
                self._fire(key, end, "early")
        for (key, end), window in self.windows.items():
            if end <= now and not window.on_time:
                self._fire(key, end, "on_time")
        self.windows = {w: o for w, o in self.windows.items() if w[1] + self.lateness > now}
        self.before = now

    def _fixed(self, events: Sequence[Event]) -> set[tuple[str, float]]:
        """Put events into their windows; the windows that got some."""
        touched: set[tuple[str, float]] = set()
        for event in events:
            ends = [] if event[2] is None else self.ends(event[2])
            still = [end for end in ends if end + self.lateness > self.before]
            for end in still:
                window = self.windows.setdefault((event[1], end), Open(end - self.size))
                window.rows.append(event)
                window.since += 1
                touched.add((event[1], end))
            if not still:
                self.late.append(event[0])
        return touched

    def _sessions(self, events: Sequence[Event]) -> set[tuple[str, float]]:
        """Put events into sessions: the sure ones first, the others from the last back."""
        touched: set[tuple[str, float]] = set()
        timed = [event for event in events if event[2] is not None]
        self.late += [event[0] for event in events if event[2] is None]
        sure = [e for e in timed if self._end(e) + self.lateness > self.before]
        doubtful = sorted((e for e in timed if e not in sure), key=self._end, reverse=True)
        for event in [*sure, *doubtful]:
            key, end = event[1], self._end(event)
            together = [
                (k, e)
                for (k, e), window in self.windows.items()
                if k == key and window.start <= end and end - self.size <= e
            ]
            if event in doubtful and not together:
                self.late.append(event[0])
                continue
            merged = Open(end - self.size, [event], 1)
            for k, e in together:
                old = self.windows.pop((k, e))
                merged.start, end = min(merged.start, old.start), max(end, e)
                merged.rows = old.rows + merged.rows
                merged.since += old.since
                merged.pane = max(merged.pane, old.pane)
                merged.on_time |= old.on_time
                merged.met |= old.met
                touched.discard((k, e))
            self.windows[key, end] = merged
            touched.add((key, end))
        for window in touched:
            self.windows[window].on_time &= window[1] <= self.before
        return touched

    def _end(self, event: Event) -> float:
        assert event[2] is not None
        return event[2] + self.size

    def _reached(self, now: float) -> float:
        """The last multiple of `every` that the watermark came to in this batch."""
        if not self.every or now in (NEVER, ENDED):
            return NEVER
        last = (now + START) // self.every * self.every - START
        return last if last > self.before else NEVER

    def _ticked(self, at: float) -> bool:
        if not self.clock:
            return False
        before, self.tick = self.tick, at // self.clock
        return before is not None and before < self.tick

    def _early(self, key: str, end: float, reached: float, *, closing: bool) -> None:
        """An early row; a window that closes in this batch tells only that a condition is met."""
        window = self.windows[key, end]
        new, again = set(), False
        for number, (condition, once) in enumerate(self.conditions):
            if condition(window.rows) and not (once and number in window.met):
                new |= {number} if once else set()
                again |= not once
        timely = window.start < reached or (self.after and window.since >= self.after)
        if new or again or (timely and not closing):
            self._fire(key, end, "early")
            window.met |= new

    def _fire(self, key: str, end: float, by: str) -> None:
        window = self.windows[key, end]
        rows = sorted(window.rows, key=lambda event: self.came[event[0]])
        start, till = round(window.start, 3), round(end, 3)
        self.out.append((key, start, till, *self.evaluate(rows), by, window.pane))
        window.pane += 1
        window.since = 0
        window.on_time |= by != "early"
        if self.discarding:
            window.rows = []
