"""Owns the picture of the results: bars of orders a second, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from bench.result import Result

_WIDTH, _LEFT, _RIGHT = 900, 240, 210
_BAR, _GAP, _HEAD, _TOP = 24, 12, 46, 64
_OURS, _OTHERS, _INK, _PALE = "#1f6feb", "#b8c0cc", "#1f2328", "#656d76"


@dataclass(frozen=True)
class Group:
    """The results over one data set, ours first."""

    title: str
    results: Sequence[Result]


def draw(groups: Sequence[Group], path: Path, *, ours: str = "Headgate") -> None:
    """Write the bars of all groups to an SVG file; all bars have one scale."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg(groups, ours=ours), encoding="utf-8")


def svg(groups: Sequence[Group], *, ours: str = "Headgate") -> str:
    """The picture's text.

    >>> r = Result("Headgate", 1.0, 10, 10.0, 1.0)
    >>> svg([Group("small", [r])]).count("<rect")
    2
    """
    fastest = max((r.orders_per_second for g in groups for r in g.results), default=1.0)
    scale = (_WIDTH - _LEFT - _RIGHT) / fastest
    parts: list[str] = [_text(24, 36, "Two lookups, orders a second", size=20, weight="600")]
    y = _TOP
    for group in groups:
        parts.append(_text(24, y + 20, group.title, colour=_PALE))
        y += _HEAD
        base = next((r.orders_per_second for r in group.results if r.name == ours), None)
        for result in group.results:
            fewer = result.orders < max(r.orders for r in group.results)
            note = f", {result.orders:,} orders only" if fewer else ""
            parts += _bar(result, y, scale, base, ours, note)
            y += _BAR + _GAP
    height = y + _GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="system-ui, sans-serif" '
        'role="img" aria-label="Orders a second by engine">'
    )
    ground = f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#ffffff"/>'
    return "\n".join([head, ground, *parts, "</svg>"]) + "\n"


def _bar(
    result: Result, y: int, scale: float, base: float | None, ours: str, note: str
) -> list[str]:
    mine = result.name == ours
    width = max(2.0, result.orders_per_second * scale)
    label = f"{result.orders_per_second:,.0f}"
    if base is not None and not mine:
        label += f"   ({ours} {base / result.orders_per_second:.2f}×)"
    label += note
    middle = y + _BAR // 2 + 5
    return [
        _text(_LEFT - 12, middle, result.name, anchor="end", weight="600" if mine else "400"),
        f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="3" '
        f'fill="{_OURS if mine else _OTHERS}"/>',
        _text(_LEFT + width + 10, middle, label, weight="600" if mine else "400"),
    ]


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 14,
    weight: str = "400",
    anchor: str = "start",
    colour: str = _INK,
) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}" fill="{colour}" xml:space="preserve">{escape(text)}</text>'
    )
