"""The last rows of a sink: what a job has written, as its topic holds it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headgate.base.errors import HeadgateError, NotFoundError
from headgate.base.secrets import shown
from headgate.connectors.topic_client import TopicRecord, TopicTail
from headgate.connectors.topics import is_topic, open_topic
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
    """How many the topic holds, where that is known."""
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
        raise NotFoundError(f"job '{job}' has no such sink", remedy="see the steps of the job")
    address = address_of(step)
    tail, text = TopicTail(()), None
    try:
        if is_topic(address):
            tail = open_topic(address).tail(limit, since=_since(run), seconds=_SECONDS)
            if tail.cut:
                text = f"there is more than could be read in {_SECONDS:.0f} seconds"
        else:
            text = "only topics can be read here"
    except HeadgateError as error:
        text = str(error)
    if not tail.records and text is None:
        text = "nothing has been written to it yet"
    return OutputView(
        job, sink, shown("", address), tail.total, tuple(map(_row, tail.records)), text
    )


def _since(run: RunHome | None) -> datetime | None:
    """Some minutes before the newest checkpoint: a broker is read from there on."""
    record = run.latest_checkpoint() if run else None
    if record is None or record.completed_at is None:
        return None
    return record.completed_at.astimezone(UTC) - _BACK


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
