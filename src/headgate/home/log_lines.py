"""Lines of a log file of any size: a bounded part of it, by search and level."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headgate.base.secrets import shown

Level = Literal["", "debug", "info", "warn", "error"]

WINDOW = 4 << 20
"""One call reads at most so many bytes."""
LONGEST = 4000
"""A longer line is cut."""
_FIRST = 128 << 10
_BY_WEIGHT: tuple[Level, ...] = ("", "debug", "info", "warn", "error")
_WORDS: dict[str, Level] = {
    "TRACE": "debug", "DEBUG": "debug", "INFO": "info", "WARN": "warn", "WARNING": "warn",
    "ERROR": "error", "FATAL": "error", "CRITICAL": "error",
}  # fmt: skip
_TIMES = r"(?:\[?\d[\d:.,/TZ+-]*\]?,?\s+){0,3}"
# What headgate says, what log4j and Python's logging write, and Spark's lines in our own layout.
_LEVEL = re.compile(rf"{_TIMES}(?:Spark )?\[?({'|'.join(_WORDS)})\b")
_JSON = re.compile(r'\{[^{]*?"level":\s*"([A-Z]+)"')
_SAID = re.compile(rf"{_TIMES}(error|warning)\b[^:]{{0,40}}:", re.IGNORECASE)
_THROWN = re.compile(
    r"Traceback \(most recent|(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)\b|Caused by:"
)
_CLOCK = re.compile(r"\d\d:\d\d:\d\d ")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class LogLine:
    """One line; secrets that its text shows by name or in an address are masked."""

    at: int
    """The byte of the file at which it begins."""
    text: str
    level: Level
    """What it says of itself, or of the line that it goes on from; empty if nothing does."""
    cut: bool = False


@dataclass(frozen=True)
class LogPart:
    """Lines of a stretch of a file."""

    lines: tuple[LogLine, ...]
    start: int
    """Before this byte nothing was looked at; 0 if there is nothing before."""
    end: int
    """Up to this byte all lines were looked at: go on from here. A last line without an end comes
    again, with the same `at`."""
    size: int


@dataclass(frozen=True)
class LogFilter:
    """Which lines are wanted.

    >>> LogFilter("lost", "warn").wants("WARN executor Lost", "warn"), LogFilter().wants("x", "")
    (True, True)
    """

    search: str = ""
    """Letters that a line has, large or small."""
    least: Level = ""
    """The level that a line has at least."""

    def wants(self, text: str, level: Level) -> bool:
        """Whether a line is one of them."""
        if _BY_WEIGHT.index(level) < _BY_WEIGHT.index(self.least):
            return False
        return self.search.lower() in text.lower()


EVERY_LINE = LogFilter()


def level_of(text: str, before: Level = "") -> Level:
    r"""The level of a line; what is indented goes on from the line before.

    >>> level_of("05:12:01 Spark ERROR Executor: lost"), level_of("26/11/19 05:12:01 WARN Task: x")
    ('error', 'warn')
    >>> level_of('{"at": "2026-11-19", "level": "WARN"}'), level_of("error: no such topic")
    ('warn', 'error')
    >>> level_of("  File app.py", "error"), level_of("05:12:01 checkpoint ck:3"), level_of("hello")
    ('error', 'info', '')
    """
    if not text or text[0].isspace():
        return before
    if found := _LEVEL.match(text) or _JSON.match(text):
        return _WORDS.get(found[1], "")
    if found := _SAID.match(text):
        return "error" if found[1].lower() == "error" else "warn"
    if _THROWN.match(text):
        return "error"
    return "info" if _CLOCK.match(text) else ""


def read_back(
    file: Path, *, before: int | None = None, limit: int, of: LogFilter = EVERY_LINE
) -> LogPart:
    """The last lines before a byte, by default before the end.

    Fewer than `limit` come back if the file has no more, or if there are no more in a `WINDOW`
    before the byte: `start` says where to look next.
    """
    size = file.stat().st_size
    before = size if before is None else min(before, size)
    reach = _FIRST
    while True:
        start = max(0, before - reach)
        read = _read(file, start, before)
        found = list(_lines(read, of))
        if len(found) >= limit or start == 0 or reach >= WINDOW:
            break
        reach = min(WINDOW, 4 * reach)
    if len(found) > limit:
        found = found[-limit:]
        first = found[0].at
    else:
        first = read.start
    return LogPart(tuple(found), first, read.end, size)


def read_on(file: Path, *, after: int, limit: int, of: LogFilter = EVERY_LINE) -> LogPart:
    """Lines from a byte on, at most a `WINDOW` and `limit` of them."""
    size = file.stat().st_size
    after = min(after, size)
    read = _read(file, after, min(size, after + WINDOW), whole_first=True)
    found: list[LogLine] = []
    for line in _lines(read, of):
        if len(found) == limit:
            return LogPart(tuple(found), after, line.at, size)
        found.append(line)
    return LogPart(tuple(found), after, read.end, size)


def tail(file: Path, lines: int) -> tuple[str, int]:
    """The last lines as they are, and the byte behind them; reads only as much as they need."""
    with file.open("rb") as stream:
        start = end = stream.seek(0, os.SEEK_END)
        data = b""
        while start and lines and data.count(b"\n") <= lines:
            start = max(0, start - _FIRST - len(data))  # twice as much each time
            stream.seek(start)
            data = stream.read(end - start)
    text = data.decode("utf-8", "replace")
    return ("".join(text.splitlines(keepends=True)[-lines:]) if lines else ""), end


def masked_text(file: Path) -> Iterator[str]:
    """All of a file, piece by piece, with its secrets masked."""
    with file.open("rb") as stream:
        while line := stream.readline(WINDOW):
            yield shown("", line.decode("utf-8", "replace"))


@dataclass(frozen=True)
class _Read:
    data: bytes
    start: int
    end: int
    """Behind the last line that has ended."""


def _read(file: Path, start: int, end: int, *, whole_first: bool = False) -> _Read:
    """Bytes from the beginning of a line on, unless a line is longer than all that is read."""
    with file.open("rb") as stream:
        stream.seek(start)
        data = stream.read(end - start)
    if start and not whole_first:
        first = data.find(b"\n") + 1
        if first < len(data):  # else there is no other line
            data, start = data[first:], start + first
    ended = start + data.rfind(b"\n") + 1
    # a line that fills all that may be read is taken as it is, so that nobody waits for its end
    return _Read(data, start, ended if ended > start or len(data) < WINDOW else start + len(data))


def _lines(read: _Read, of: LogFilter) -> Iterator[LogLine]:
    at, level = read.start, _BY_WEIGHT[0]
    for raw in read.data.split(b"\n"):
        begins, at = at, at + len(raw) + 1
        if begins >= read.start + len(read.data):
            return  # behind the last line's end
        text = _COLOURS.sub("", raw[: 4 * LONGEST].decode("utf-8", "replace").rstrip("\r"))
        level = level_of(text, level)
        if not of.wants(text, level):
            continue
        text = shown("", text)
        if of.wants(text, level):  # nobody finds a secret by searching for it
            yield LogLine(begins, text[:LONGEST], level, len(raw) > LONGEST)
