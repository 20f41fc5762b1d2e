"""What keyed steps give: their rows, and the outputs beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.api.stream import Stream

if TYPE_CHECKING:
    pass


class Windowed(Stream):
    """The rows that windows emit.

    >>> visits = hg.topic("log:visits", schema="page STRING, at TIMESTAMP")
    >>> keyed = job.source("visits", visits, event_time=hg.event_time("at")).key_by("page")
    >>> hourly = keyed.window("hourly", hg.tumbling("1 hour"), F.count("*").alias("n"))
    >>> hourly.columns
    ['page', 'window_start', 'window_end', 'n', 'is_partial', 'fired_by', 'pane']
    """

    @property
    def late(self) -> Stream:
        """The rows that were too late for their window or had no event time, unchanged.

        >>> hourly.late.columns
        ['page', 'at']
        """
        return self.side("late")


class Processed(Stream):
    """The rows that a process function emits; created by `job.process`.

    >>> class Lengths(hg.Process):
    ...     def on_visits(self, visit: Row, ctx: hg.Context) -> hg.Out[int]:
    ...         yield len(visit.page)
    >>> pages = job.source("visits", hg.topic("log:visits", schema="page STRING")).key_by("page")
    >>> lengths = job.process("lengths", Lengths(), visits=pages, on_error="side")
    >>> lengths.columns
    ['value']
    """

    @property
    def errors(self) -> Stream:
        """The rows whose handler failed, and why: handler, key, row, error, location.

        >>> lengths.errors.columns
        ['handler', 'key', 'row', 'error', 'location']
        """
        return self.side("errors")


class Joined(Stream):
    """The pairs of rows from a join.

    >>> order = hg.topic("log:orders", schema="id BIGINT, at TIMESTAMP")
    >>> orders = job.source("orders", order, event_time=hg.event_time("at")).key_by("id")
    >>> payment = hg.topic("log:payments", schema="order BIGINT, paid TIMESTAMP")
    >>> payments = job.source("payments", payment, event_time=hg.event_time("paid"))
    >>> paid = orders.join(
    ...     "paid", payments.key_by("order"), within=hg.between("0 seconds", "1 hour"),
    ...     into="payment", left_unmatched="side", right_unmatched="side")
    >>> paid.columns
    ['id', 'at', 'payment']
    """

    @property
    def unmatched_left(self) -> Stream:
        """The rows of the left stream without a match, unchanged.

        >>> paid.unmatched_left.columns
        ['id', 'at']
        """
        return self.side("unmatched_left")

    @property
    def unmatched_right(self) -> Stream:
        """The rows of the right stream without a match, unchanged.

        >>> paid.unmatched_right.columns
        ['order', 'paid']
        """
        return self.side("unmatched_right")

    @property
    def late(self) -> Stream:
        """Rows that came too late or had no event time, as structs `left` and `right`.

        >>> paid.late.columns
        ['left', 'right']
        """
        return self.side("late")


class Deduped(Stream):
    """The first row of each key.

    >>> events = job.source("events", hg.topic("log:events", schema="id STRING, value BIGINT"))
    >>> once = events.key_by("id").dedupe("once", within="1 hour")
    >>> once.columns
    ['id', 'value']
    """

    @property
    def duplicates(self) -> Stream:
        """The rows whose key has come before, unchanged.

        >>> once.duplicates.columns
        ['id', 'value']
        """
        return self.side("duplicates")
