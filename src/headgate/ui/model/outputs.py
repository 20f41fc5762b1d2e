"""The last rows of a sink: what a job has written, as its topic holds it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, timedelta

from headgate.base.errors import HeadgateError, NotFoundError
from headgate.base.secrets import shown
from headgate.connectors.log.files import TopicFiles
from headgate.connectors.topic_client import TopicRecord
from headgate.connectors.topics import open_topic
from headgate.home.layout import RunHome
from headgate.home.times import from_ms
from headgate.ui.model.roles import address_of, is_sink
from headgate.ui.model.view import IsoTime, View

_BACK = timedelta(minutes=5)
_SECONDS = 5.0
_MOST_CHARACTERS = 4000


@dataclass(frozen=True)
class OutputRow(View):
    """A record of a topic."""

    partition: int
    offset: int | str
    at: IsoTime | None
    key: str | None
    value: str | None
    cut: bool
    """Whether the value is longer than what is shown."""


@dataclass(frozen=True)
class OutputView(View):
    """The newest records of a sink, the newest last."""

    job: str
    sink: str
    address: str
    records: int | None
    """How many a topic of files holds."""
    rows: tuple[OutputRow, ...]
    text: str | None
    """Why there are none, or not all."""


@dataclass(frozen=True)
class OutputsView(View):
    """The sinks of a job."""

    job: str
    sinks: tuple[str, ...]


def outputs_view(job: str, run: RunHome | None) -> OutputsView:
    """The sinks of a job."""
    steps = run.graph()["steps"] if run else []
    return OutputsView(job, tuple(str(s["id"]) for s in steps if is_sink(s)))


def output_view(job: str, run: RunHome | None, sink: str, *, limit: int) -> OutputView:
    """Read the end of a sink's topic; only addresses of the job's own graph are read."""
    steps = run.graph()["steps"] if run else []
    step = next((s for s in steps if is_sink(s) and s["id"] == sink), None)
    if step is None:
        raise NotFoundError(f"job '{job}' has no such sink")
    address = address_of(step)
    count: int | None = None
    text: str | None = None
    found: list[TopicRecord] = []
    try:
        if address.startswith("log:"):
            count, found = _tail_of_files(address.removeprefix("log:"), limit)
        elif address.startswith(("kafka:", "pulsar")):
            found, text = _tail_of_broker(address, run, limit)
        else:
            text = "only topics can be read here"
    except HeadgateError as error:
        text = str(error)
    if not found and text is None:
        text = "nothing has been written to it yet"
    return OutputView(
        job, sink, shown("", address), count, tuple(_row(record) for record in found), text
    )


def _tail_of_files(path: str, limit: int) -> tuple[int, list[TopicRecord]]:
    topic = TopicFiles(path)
    if not topic.exists():
        return 0, []
    starts, ends = topic.start_offsets(), topic.end_offsets()
    begin = {part: max(starts.get(part, 0), end - limit) for part, end in ends.items()}
    found = [
        TopicRecord(r.partition, r.offset, r.timestamp_ms, r.key, r.value)
        for r in topic.read(begin)
    ]
    found.sort(key=lambda record: (record.timestamp_ms or 0, record.offset))
    return sum(ends.values()), found[-limit:]


def _tail_of_broker(
    address: str, run: RunHome | None, limit: int
) -> tuple[list[TopicRecord], str | None]:
    """What came to a broker's topic in the minutes before the newest checkpoint, and since."""
    record = run.latest_checkpoint() if run else None
    if record is None or record.completed_at is None:
        return [], None
    since = record.completed_at.astimezone(UTC) - _BACK
    kept: deque[TopicRecord] = deque(maxlen=limit)
    ends = time.monotonic() + _SECONDS
    with closing(open_topic(address).read(since)) as records:
        for one in _before(records, ends):
            kept.append(one)
    late = time.monotonic() >= ends
    return list(kept), "there is more than could be read in 5 seconds" if late else None


def _before(records: Iterator[TopicRecord | None], ends: float) -> Iterator[TopicRecord]:
    for record in records:
        if record is not None:
            yield record
        if time.monotonic() >= ends:
            return


def _row(record: TopicRecord) -> OutputRow:
    value = record.value
    cut = value is not None and len(value) > _MOST_CHARACTERS
    return OutputRow(
        record.partition,
        record.offset,
        from_ms(record.timestamp_ms),
        record.key,
        value[:_MOST_CHARACTERS] if value is not None else None,
        cut,
    )
