"""Tables and values as people read them; never cut short."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

DASH = "–"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> str:
    """Columns under their heads, each as wide as its widest value.

    >>> print(table(["JOB", "ROWS"], [["store", "12"]], right=["ROWS"]))
    JOB     ROWS
    store     12
    """
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(row, widths, head, strict=True)
        ]
        lines.append("   ".join(cells).rstrip())
    return "\n".join(lines)


def number(value: float | None) -> str:
    """A whole number with thousands apart, or a dash.

    >>> number(1234567)
    '1,234,567'
    """
    return DASH if value is None else f"{value:,.0f}"


def size(value: int | None) -> str:
    """Bytes in the unit that reads best.

    >>> size(9542041)
    '9.1 MiB'
    """
    if value is None:
        return DASH
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def local_time(when: datetime | None) -> str:
    """A time in this machine's zone, with its offset."""
    return when.astimezone().isoformat(sep=" ", timespec="seconds") if when else DASH
