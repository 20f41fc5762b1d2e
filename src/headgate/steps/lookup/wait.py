"""Wait: how long rows of a lookup are held for their table row."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.durations import Duration, parse_duration


@dataclass(frozen=True)
class Wait:
    """Hold unmatched rows this long for their table row, then send them to `.missing`.

    The job's watermark waits for them, so that they are not late for windows that follow. With
    `hold_watermark=False` it moves on.

    >>> Wait("30 seconds").timeout
    '30 seconds'
    """

    timeout: Duration
    hold_watermark: bool = True

    def __post_init__(self) -> None:
        parse_duration(self.timeout, what="Wait.timeout")
