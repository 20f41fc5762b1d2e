"""What a person sees of a running job: a live line on a terminal, else plain log lines."""

from __future__ import annotations

import sys
import time
from collections import deque
from datetime import timedelta
from typing import Protocol, TextIO

from headgate.base.durations import format_duration
from headgate.base.secrets import redact
from headgate.home.model import CheckpointRecord
from headgate.home.read.counts import behind, source_rows
from headgate.home.times import now

_RATE_SECONDS = 10.0
_LINE_SECONDS = 1.0


class Display(Protocol):
    """Shows a running job."""

    def say(self, text: str) -> None:
        """Show a line that stays."""

    def checkpoint(self, record: CheckpointRecord) -> None:
        """Take note of a new checkpoint."""

    def tick(self) -> None:
        """Show how old the news is; called several times a second."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class Rate:
    """Records a second over the last checkpoints, from what the sources gave."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()
        self._since = time.monotonic()

    def add(self, rows: int) -> None:
        """Count the records of a checkpoint that has just ended."""
        self._points.append((time.monotonic(), rows))

    def value(self) -> float:
        """Records a second now."""
        end = time.monotonic()
        while self._points and end - self._points[0][0] > _RATE_SECONDS:
            self._points.popleft()
        span = min(_RATE_SECONDS, max(end - self._since, 0.001))
        return sum(rows for _, rows in self._points) / span


class SilentDisplay:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Show a line that stays."""

    def checkpoint(self, record: CheckpointRecord) -> None:
        """Take note of a new checkpoint."""

    def tick(self) -> None:
        """Show how old the news is."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class PlainDisplay:
    """One line a checkpoint, at most one a second, and always the last one."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._shown = 0.0
        self._held: list[CheckpointRecord] = []

    def say(self, text: str) -> None:
        """Show a line that stays."""
        if not self._quiet:
            print(f"{_clock()} {redact(text)}", file=self._stream, flush=True)

    def checkpoint(self, record: CheckpointRecord) -> None:
        """Take note of a new checkpoint."""
        self._held.append(record)
        self.tick()

    def tick(self) -> None:
        """Show how old the news is."""
        if self._held and time.monotonic() - self._shown >= _LINE_SECONDS:
            self._flush()

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._held:
            self._flush()

    def _flush(self) -> None:
        held, self._held = self._held, []
        last, rows = held[-1], sum(source_rows(record) for record in held)
        name = f"ck:{last.id}" if len(held) == 1 else f"ck:{held[0].id}-{last.id}"
        spent = sum(record.duration_ms or 0 for record in held)
        line = f"checkpoint {name}  {rows:,} records  {format_duration(_ms(spent))}"
        if spent:
            line += f"  {rows * 1000 / spent:,.0f}/s"
        if waiting := behind(last):
            line += f"  behind by {waiting:,}"
        self.say(line)
        self._shown = time.monotonic()


class LiveDisplay:
    """One line at the bottom of the terminal that is drawn again and again."""

    def __init__(self, *, color: bool = True) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, no_color=not color, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()
        self._rate = Rate()
        self._last: CheckpointRecord | None = None
        self._total = 0
        self._drawn = 0.0

    def say(self, text: str) -> None:
        """Show a line that stays."""
        self._console.print(redact(text), markup=False)

    def checkpoint(self, record: CheckpointRecord) -> None:
        """Take note of a new checkpoint."""
        rows = source_rows(record)
        self._rate.add(rows)
        self._total += rows
        self._last = record

    def tick(self) -> None:
        """Show how old the news is."""
        if time.monotonic() - self._drawn < 0.2:
            return
        self._drawn = time.monotonic()
        self._live.update(self._line(), refresh=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._live.stop()
        if self._last is not None:
            self.say(f"{self._total:,} records  last checkpoint ck:{self._last.id}")

    def _line(self) -> str:
        if self._last is None:
            return "starting: no checkpoint yet"
        age = now() - self._last.completed_at if self._last.completed_at else timedelta(0)
        return (
            f"{self._rate.value():,.0f} records/s   behind by {behind(self._last):,}   "
            f"last checkpoint ck:{self._last.id} {format_duration(max(age, timedelta(0)))} ago   "
            f"{self._total:,} records"
        )


def open_display(*, quiet: bool = False, color: bool = True) -> Display:
    """The display that fits where standard error goes."""
    if not quiet and sys.stderr.isatty():
        return LiveDisplay(color=color)
    return PlainDisplay(sys.stderr, quiet=quiet)


def _clock() -> str:
    return now().astimezone().strftime("%H:%M:%S")


def _ms(millis: int) -> timedelta:
    return timedelta(milliseconds=millis)
