"""Streams with a key, and the steps that keep state by it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeGuard, overload

from pyspark.sql import Column

from headgate.api.hints import Hinted
from headgate.api.keyed_outputs import Deduped, Joined, Processed, Windowed
from headgate.api.stream import Changes
from headgate.base.durations import Duration
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.port import KeyedPort, Port
from headgate.steps.aggregate import add_aggregate
from headgate.steps.dedupe import add_dedupe
from headgate.steps.join import Between, SameWindow, Unmatched, Within, add_join
from headgate.steps.process.own_kind import StepKind, add_own_step
from headgate.steps.top import RowWindows, add_top, add_window_top
from headgate.steps.window import Panes, Trigger, Window, add_window


class Keyed(Hinted):
    """A stream with a key: the next step handles the rows of each key separately.

    After `key_by()` without a key, all rows belong together, and a single task handles them.

    >>> schema = "id BIGINT, page STRING, at TIMESTAMP"
    >>> visits = job.source(
    ...     "visits", hg.topic("log:visits", schema=schema), event_time=hg.event_time("at"))
    >>> keyed = visits.key_by("page")
    """

    def __init__(self, keyed: KeyedPort) -> None:
        self._keyed = keyed

    def window(
        self,
        name: str,
        assigner: Window,
        *aggregates: Column,
        early: Trigger | Sequence[Trigger] = (),
        allowed_lateness: Duration = "0 seconds",
        panes: Panes = "accumulating",
    ) -> Windowed:
        """Aggregate the rows of each key and window.

        A row has the key, window_start, window_end, the aggregates, is_partial, fired_by and pane.
        When the watermark passes the end, each key and window emits exactly one row with fired_by
        "on_time". `early` triggers emit rows before that. Rows that come up to `allowed_lateness`
        after the end cause one updated row per batch (fired_by "late"). Later rows are in `.late`.
        With panes="discarding", a row covers only the input since the previous row.

        >>> keyed.window(
        ...     "visits_15m", hg.tumbling("15 minutes"), F.count("*").alias("visits"),
        ...     early=hg.every("2 minutes"), allowed_lateness="10 minutes").columns
        ['page', 'window_start', 'window_end', 'visits', 'is_partial', 'fired_by', 'pane']
        """
        node = add_window(self._keyed, name, assigner, aggregates, early, allowed_lateness, panes)
        return Windowed(Port(self._keyed.port.plan, node))

    def join(
        self,
        name: str,
        other: Keyed,
        *,
        within: Between | Window,
        where: Expr | None = None,
        into: str | None = None,
        take: Sequence[Expr] | None = None,
        left_unmatched: Unmatched = "drop",
        right_unmatched: Unmatched = "drop",
    ) -> Joined:
        """Pair the rows of this stream (left) and the other (right) that have the same key.

        Rows match if the right row's event time minus the left row's is in the range `within`, or
        if both are in the same window: `hg.tumbling(...)` or `hg.sliding(...)`. `where` adds a
        condition on the left row's columns and the right row as the struct `into` (by default the
        name of the right stream's step). A pair has the left row's columns and that struct, or,
        with `take`, columns or expressions of the right row. Rows without a match are dropped, or
        leave with nulls ("null") or through `.unmatched_left` and `.unmatched_right` ("side"), as
        soon as no match can arrive any more. Rows behind the watermark are in `.late`.

        >>> keyed.join(
        ...     "next", visits.key_by("page"), within=hg.between("1 second", "10 minutes"),
        ...     into="then", where="id <> then.id").columns
        ['id', 'page', 'at', 'then']
        """
        if not isinstance(other, Keyed):
            raise GraphError(
                "a join needs a second stream with a key",
                step=name if isinstance(name, str) else None,
                got=type(other).__name__,
                remedy='give it one: other.key_by("column")',
                location=user_location(),
            )
        node = add_join(
            self._keyed,
            name,
            other._keyed,
            within=_within(name, within),
            where=where,
            into=into,
            take=take,
            unmatched=(left_unmatched, right_unmatched),
        )
        return Joined(Port(self._keyed.port.plan, node))

    def dedupe(self, name: str, *, within: Duration | None = None) -> Deduped:
        """Pass on the first row of each key; later rows leave through `.duplicates`.

        A key is forgotten `within` after the row that passed, by event time if the stream has one,
        otherwise by the time of batches. Without `within`, keys are remembered forever.

        >>> keyed.dedupe("first_visit", within="1 day").columns
        ['id', 'page', 'at']
        """
        return Deduped(Port(self._keyed.port.plan, add_dedupe(self._keyed, name, within)))

    def aggregate(
        self,
        name: str,
        *aggregates: Column,
        emit: Trigger | None = None,
        having: Expr | None = None,
        ttl: Duration | None = None,
    ) -> Changes:
        """Aggregate all rows of each key, and emit each result that changes.

        Each batch emits at most one row per key, with the key and the aggregates, if they have
        changed. With `emit=hg.every(...)`, changes are emitted when time passes a multiple of the
        interval: event time if the stream has one and the clock is not "processing", otherwise the
        time of batches. `having` is a condition on results; a key that stops meeting it is deleted.
        With `ttl`, a key that receives no rows for this long is forgotten, and its row is deleted.
        This goes by event time if the stream has one, otherwise by the time of batches. Distinct
        aggregates are exact: the state keeps each value of a key.

        >>> keyed.aggregate("totals", F.count("*").alias("n"), having="n > 1", ttl="1 day").columns
        ['page', 'n']
        """
        node = add_aggregate(
            self._keyed, name, aggregates, emit=_emit(name, emit), having=having, ttl=ttl
        )
        return Changes(Port(self._keyed.port.plan, node))

    @overload
    def top(self, name: str, n: int, *, by: Expr | Sequence[Expr]) -> Changes: ...

    @overload
    def top(self, name: str, n: int, *, by: Expr | Sequence[Expr], within: Window) -> Windowed: ...

    def top(
        self, name: str, n: int, *, by: Expr | Sequence[Expr], within: Window | None = None
    ) -> Changes | Windowed:
        """The first rows of each key in a given order, with their rank, as changes by key and rank.

        Ties are ordered by their position in the source. In a stream of changes, an update replaces
        the previous row, and after a deletion the next row moves up.

        >>> keyed.top("newest", 3, by=F.desc("at")).columns
        ['page', 'rank', 'id', 'at']

        With `within=hg.tumbling(...)` or `hg.sliding(...)`, you get the first rows of each key and
        window. They are emitted once, when the watermark passes the window's end, and never change.
        Later rows are in `.late`.

        >>> hourly = keyed.top("newest_1h", 3, by=F.desc("at"), within=hg.tumbling("1 hour"))
        >>> hourly.columns
        ['page', 'window_start', 'window_end', 'rank', 'id', 'at']
        >>> hourly.late.columns
        ['id', 'page', 'at']
        """
        order = [by] if isinstance(by, str | Column) else list(by)
        plan = self._keyed.port.plan
        if within is None:
            return Changes(Port(plan, add_top(self._keyed, name, n, order)))
        windows = _windows(name, within)
        return Windowed(Port(plan, add_window_top(self._keyed, name, n, order, windows)))

    def step(self, name: str, kind: StepKind) -> Processed:
        """A step of a kind that you have defined.

        >>> class First(hg.Process):
        ...     seen = hg.value_state(bool)
        ...     def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[int]:
        ...         if not self.seen.get():
        ...             self.seen.set(True)
        ...             yield row.id
        >>> class FirstOfPage(hg.StepKind):
        ...     kind = "first_of_page"
        ...     def function(self) -> hg.Process:
        ...         return First()
        >>> keyed.step("first", FirstOfPage()).columns
        ['value']
        """
        return Processed(Port(self._keyed.port.plan, add_own_step(self._keyed, name, kind)))


def _emit(step: str, emit: object) -> tuple[timedelta, bool] | None:
    """The interval in which changes are emitted, and whether it is of event time."""
    if emit is None:
        return None
    if isinstance(emit, Trigger):
        config = emit.config()
        if config["type"] == "every":
            return timedelta(microseconds=config["interval_us"]), config["clock"] == "event"
    raise GraphError(
        "emit must be hg.every(...)",
        step=step if isinstance(step, str) else None,
        got=str(emit),
        remedy='for instance hg.every("10 seconds"), or leave it out for an update each batch',
        location=user_location(),
    )


def _within(step: str, within: object) -> Within:
    """What decides which rows match by their time."""
    if isinstance(within, Between):
        return within
    if _are_of_event_time(within):
        return SameWindow(within.config(), str(within))
    raise _wrong_within(step, within, "hg.between(...), hg.tumbling(...) or hg.sliding(...)")


def _windows(step: str, within: object) -> RowWindows:
    """The windows of which there is a top each."""
    if _are_of_event_time(within):
        return RowWindows(within.config(), str(within))
    raise _wrong_within(step, within, "hg.tumbling(...) or hg.sliding(...)")


def _are_of_event_time(within: object) -> TypeGuard[Window]:
    """Whether these are windows that a row is in by its event time alone."""
    if not isinstance(within, Window):
        return False
    config = within.config()
    return config["type"] in ("tumbling", "sliding") and "clock" not in config


def _wrong_within(step: str, within: object, wanted: str) -> GraphError:
    return GraphError(
        f"within must be {wanted}, of event time",
        step=step if isinstance(step, str) else None,
        got=str(within),
        remedy='use one of these, for instance hg.tumbling("10 minutes")',
        location=user_location(),
    )
