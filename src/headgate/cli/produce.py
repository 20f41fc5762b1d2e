"""Lines to records: reading them, their keys, and sending them in chunks at a rate."""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from headgate.base.errors import UsageError
from headgate.cli.common import Ui

if TYPE_CHECKING:
    from headgate.connectors.records import Record

_CHUNK = 50_000
_WAIT_SECONDS = 0.2
_SAY_SECONDS = 5.0

KeyOf = Callable[[str], tuple[str | None, str | None]]
"""A line as its key and its value; no value deletes the key."""


def key_of(*, field: str | None, with_keys: bool) -> KeyOf:
    """How to find the key of a line."""
    if with_keys:
        return _before_tab
    if field is None:
        return lambda line: (None, line)
    return lambda line: (_field(line, field), line)


def _before_tab(line: str) -> tuple[str | None, str | None]:
    key, tab, value = line.partition("\t")
    if not tab:
        raise ValueError("has no tab between key and value")
    return key, value or None


def _field(line: str, field: str) -> str:
    try:
        data: Any = json.loads(line)
    except ValueError:
        raise ValueError("is not JSON, so it has no key") from None
    if not isinstance(data, dict) or data.get(field) is None:
        raise ValueError(f"has no field '{field}'")
    value = data[field]
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


class Lines:
    """Turns lines into records and counts them."""

    def __init__(self, key_of: KeyOf) -> None:
        self._key_of = key_of
        self.number = 0
        self.blank = 0

    def record(self, line: bytes) -> Record | None:
        """The record of a line, or nothing if it is blank."""
        from headgate.connectors.records import Record

        self.number += 1
        try:
            text = line.decode("utf-8").rstrip("\r\n")
            if not text:
                self.blank += 1
                return None
            key, value = self._key_of(text)
        except UnicodeDecodeError:
            raise self.wrong("is not UTF-8 text") from None
        except ValueError as error:
            raise self.wrong(str(error)) from None
        return Record(value, key)

    def wrong(self, why: str) -> UsageError:
        """An error that names the line."""
        return UsageError(
            f"line {self.number} {why}",
            remedy="correct the line; the lines before it may have been sent",
        )


def read_lines(file: Path | None) -> Iterator[bytes | None]:
    """Lines of a file or of standard input; nothing now and then while input is slow.

    A pipe, such as `<(command)` of a shell, is as slow as the command that writes it.
    """
    if file is not None and file.is_file():
        with file.open("rb") as stream:
            yield from stream
        return
    source = sys.stdin.buffer if file is None else file.open("rb")
    lines: queue.Queue[bytes | None] = queue.Queue(maxsize=_CHUNK)
    threading.Thread(target=_pump, args=(source, lines), daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=_WAIT_SECONDS)
        except queue.Empty:
            yield None  # a chance to send what has come so far
            continue
        if line is None:
            return
        yield line


def _pump(stream: BinaryIO, lines: queue.Queue[bytes | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def send(
    source: Iterator[bytes | None],
    lines: Lines,
    *,
    append: Callable[[list[Record]], object],
    rate: float | None,
    progress: Progress,
) -> int:
    """Send every line; gives how many records were acknowledged."""
    from headgate.connectors.topic_client import NotAcknowledgedError

    chunk: list[Record] = []
    size, sent, began = 0, 0, time.monotonic()
    most = _CHUNK if rate is None else max(1, min(_CHUNK, int(rate * _WAIT_SECONDS)))

    def flush() -> None:
        nonlocal chunk, size, sent
        if not chunk:
            return
        try:
            append(chunk)
        except NotAcknowledgedError as error:
            raise error.after(sent) from error
        sent += len(chunk)
        progress.add(len(chunk), size)
        chunk, size = [], 0
        if rate is not None:
            time.sleep(max(0.0, began + sent / rate - time.monotonic()))

    for line in source:
        if line is not None:
            try:
                record = lines.record(line)
            except UsageError:
                flush()  # what came before the bad line is not lost
                raise
            size += len(line)
            if record is not None:
                chunk.append(record)
        if line is None or len(chunk) >= most:
            flush()
    flush()
    return sent


class Progress:
    """How far a long work is: a bar on a terminal, a line every few seconds elsewhere."""

    def __init__(self, ui: Ui, *, total: int | None) -> None:
        self._ui = ui
        self._total = total
        self._records = 0
        self._bytes = 0
        self._said = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if not self._ui.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            console = Console(stderr=True, no_color=not self._ui.color)
            columns = [TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()]
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("0 records", total=self._total)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def add(self, records: int, size: int) -> None:
        """Count what was sent."""
        self._records += records
        self._bytes += size
        text = f"{self._records:,} records"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._bytes, description=text)
        elif time.monotonic() - self._said > _SAY_SECONDS:
            self._said = time.monotonic()
            share = f" ({self._bytes / self._total:.0%})" if self._total else ""
            self._ui.say(text + share)
