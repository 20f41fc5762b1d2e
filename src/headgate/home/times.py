"""Times as the home keeps them: UTC, in ISO 8601 with milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def now() -> datetime:
    """The time, in UTC, as the home keeps it."""
    return datetime.now(UTC)


def to_iso(when: datetime | None) -> str | None:
    """ISO 8601 in UTC with milliseconds.

    >>> to_iso(datetime(2026, 1, 1, tzinfo=UTC))
    '2026-01-01T00:00:00.000Z'
    """
    if when is None:
        return None
    text = when.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def from_iso(text: str | None) -> datetime | None:
    """Read a time that the home or Spark wrote."""
    if text is None:
        return None
    when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def from_ms(millis: int | None) -> datetime | None:
    """A time from milliseconds since 1970; one that Python cannot hold is the nearest that it can.

    >>> from_ms(1000), from_ms(10**18).year
    (datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc), 9999)
    """
    if millis is None:
        return None
    try:
        return _EPOCH + millis * _MS
    except OverflowError:
        return (datetime.max if millis > 0 else datetime.min).replace(tzinfo=UTC)


def to_ms(when: datetime | None) -> int | None:
    """Milliseconds since 1970.

    >>> to_ms(from_ms(-1500))
    -1500
    """
    return None if when is None else (when - _EPOCH) // _MS
