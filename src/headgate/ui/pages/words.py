"""Numbers, sizes and durations as people read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from markupsafe import Markup, escape

_UNITS = ("KB", "MB", "GB", "TB", "PB")


def count(number: float | None) -> str:
    """A number with commas; a dash for none.

    >>> count(1234567), count(None), count(0.25), count(1234.5)
    ('1,234,567', '–', '0.25', '1,234')
    """
    if number is None:
        return "–"
    return f"{number:,}" if isinstance(number, int) else _plain(number)


def _plain(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def size(number: float | None) -> str:
    """Bytes in the unit that suits them.

    >>> size(0), size(1023), size(1536), size(5 * 1024**3)
    ('0 B', '1,023 B', '1.5 KB', '5.0 GB')
    """
    if number is None:
        return "–"
    if number < 1024:
        return f"{round(number):,} B"
    power = 1
    while number >= 1024 ** (power + 1) and power < len(_UNITS):
        power += 1
    return f"{number / 1024**power:,.1f} {_UNITS[power - 1]}"


def duration(time: timedelta | float | None) -> str:
    """A stretch of time (a number is in milliseconds), two units at most.

    >>> duration(0), duration(850), duration(1500), duration(61_000)
    ('0 ms', '850 ms', '1.5 s', '1 min 1 s')
    >>> duration(timedelta(days=1, hours=1, minutes=5)), duration(timedelta(hours=-2))
    ('1 d 1 h', '-2 h')
    """
    if time is None:
        return "–"
    ms = time / timedelta(milliseconds=1) if isinstance(time, timedelta) else time
    if abs(ms) < 1000:
        return f"{round(ms)} ms"
    if abs(ms) < 59_950:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    units = (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1))
    unit, length, smaller, part = next(u for u in units if seconds >= u[1])
    rest = seconds % length // part
    return f"{sign}{seconds // length} {unit}" + (f" {rest} {smaller}" if rest else "")


def percent(share: float | None) -> str:
    """A share of one in percent.

    >>> percent(0.123), percent(None)
    ('12 %', '–')
    """
    return "–" if share is None else f"{share * 100:.0f} %"


def moment(time: datetime) -> str:
    """A time in UTC, as it stands where the page's script has not made it local.

    >>> moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02 03:04:05'
    """
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def short(text: str, limit: int) -> str:
    """The text, cut to `limit` letters with dots at its end.

    >>> short("orders", 10), short("orders_per_country", 10)
    ('orders', 'orders_pe…')
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def short_front(text: str, limit: int) -> str:
    """The end of the text, with dots before it.

    >>> short_front("log:/data/store/orders", 10)
    '…re/orders'
    """
    return text if len(text) <= limit else "…" + text[len(text) - limit + 1 :]


def plural(number: int, word: str, many: str = "") -> str:
    """A number with the word for what it counts.

    >>> plural(1, "run"), plural(1200, "row"), plural(2, "key", "keys")
    ('1 run', '1,200 rows', '2 keys')
    """
    return f"{number:,} {word if number == 1 else many or word + 's'}"


def marked(text: str, search: str) -> Markup:
    """The text as HTML, with what was searched for marked.

    >>> marked("a <b> Lost, lost", "lost")
    Markup('a &lt;b&gt; <mark>Lost</mark>, <mark>lost</mark>')
    """
    if not search:
        return escape(text)
    parts = re.split(f"({re.escape(search)})", text, flags=re.IGNORECASE)
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part) if at % 2 else escape(part)
        for at, part in enumerate(parts)
    )
