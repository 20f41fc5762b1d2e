"""Windows in plain Python: what a window step must give, told the watermark of each batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

NEVER, ENDED = float("-inf"), float("inf")
START = 1_700_000_000 // 3600 * 3600
"""Where the seconds of events are counted from; windows are counted from 1970."""
Event = tuple[int, str, int | None, int]
"""id, key, event time in seconds, value"""


@dataclass
class Open:
    """A key and window."""

    rows: list[Event] = field(default_factory=list)
    since: int = 0
    pane: int = 0
    on_time: bool = False
    met: set[int] = field(default_factory=set)


@dataclass
class Truth:
    """Windows of `size` seconds that begin every `slide`, over events that come in batches."""

    size: int
    delay: int
    slide: int = 0
    offset: int = 0
    lateness: int = 0
    every: int = 0
    after: int = 0
    conditions: Sequence[tuple[Callable[[int, int], bool], bool]] = ()
    discarding: bool = False
    windows: dict[tuple[str, int], Open] = field(default_factory=dict)
    newest: float = NEVER
    before: float = NEVER
    out: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    late: Counter[int] = field(default_factory=Counter)

    def ends(self, time: int) -> list[int]:
        slide = self.slide or self.size
        shift = self.offset - START
        last = (time - shift) // slide * slide + shift + self.size
        return [end for end in range(last, time, -slide) if end - self.size <= time < end]

    def batch(self, events: Sequence[Event], *, ended: bool = False) -> None:
        """One batch; its watermark is of the batches before it."""
        now = ENDED if ended else max(self.newest - self.delay, self.before)
        touched: dict[tuple[str, int], list[Event]] = {}
        for event in events:
            time = event[2]
            ends = [] if time is None else self.ends(time)
            still = [end for end in ends if end + self.lateness > self.before]
            for end in still:
                touched.setdefault((event[1], end), []).append(event)
            if not still:
                self.late[event[0]] += 1
            if time is not None:
                self.newest = max(self.newest, time)
        passed = self._passed(now)
        for (key, end), rows in touched.items():
            window = self.windows.setdefault((key, end), Open())
            window.rows += rows
            window.since += len(rows)
            if end <= self.before:
                self._fire(key, end, "late" if window.on_time else "on_time")
            elif end > now:
                self._early(key, end, passed)
        for (key, end), window in self.windows.items():
            if end > now and passed and window.since:
                self._fire(key, end, "early")
        for (key, end), window in self.windows.items():
            if end <= now and not window.on_time:
                self._fire(key, end, "on_time")
        self.windows = {w: o for w, o in self.windows.items() if w[1] + self.lateness > now}
        self.before = now

    def _passed(self, now: float) -> bool:
        if not self.every or now == NEVER:
            return False
        if now == ENDED or self.before == NEVER:
            return True
        return (now + START) // self.every > (self.before + START) // self.every

    def _early(self, key: str, end: int, passed: bool) -> None:
        window = self.windows[key, end]
        n, total = len(window.rows), sum(row[3] for row in window.rows)
        new, again = set(), False
        for number, (condition, once) in enumerate(self.conditions):
            if condition(n, total) and not (once and number in window.met):
                new |= {number} if once else set()
                again |= not once
        if passed or new or again or (self.after and window.since >= self.after):
            self._fire(key, end, "early")
            window.met |= new

    def _fire(self, key: str, end: int, by: str) -> None:
        window = self.windows[key, end]
        values = [row[3] for row in window.rows]
        names = tuple(sorted({f"v{value % 5}" for value in values}))
        total = sum(values) if values else None
        self.out[key, end - self.size, end, len(values), total, names, by, window.pane] += 1
        window.pane += 1
        window.since = 0
        window.on_time |= by != "early"
        if self.discarding:
            window.rows = []
