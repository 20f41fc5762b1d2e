"""Charts as SVG text: a number over checkpoints, with its axis in words that suit it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_WIDTH, _HEIGHT = 640, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 8, 10, 24
_MOST = 160
"""Points that are drawn. Of several checkpoints in one point the highest number is shown."""


@dataclass(frozen=True)
class Point:
    """A number of one checkpoint; `mark` draws it as a savepoint or as a failure."""

    label: str
    value: float
    mark: str = ""


def chart(
    points: Sequence[Point],
    title: str,
    words: Callable[[float], str],
    base: int = 10,
) -> Markup:
    """A line over its points, from zero to above the highest.

    `base` is 1024 for bytes, so that the axis has round numbers there, too.

    >>> svg = chart([Point("ck:0", 5), Point("ck:1", 9)], "Duration", str)
    >>> svg.count("<circle"), "ck:1: 9" in svg
    (2, True)
    """
    if not points:
        return Markup("")
    drawn, each = _thin(points)
    ticks = _ticks(max(p.value for p in drawn), base)
    top = ticks[-1]
    wide = _WIDTH - _LEFT - _RIGHT
    high = _HEIGHT - _TOP - _BOTTOM

    def x(number: int) -> float:
        return _LEFT + (wide * number / (len(drawn) - 1) if len(drawn) > 1 else wide / 2)

    def y(value: float) -> float:
        return _TOP + high * (1 - value / top)

    last = f"{len(points)} checkpoints; the last, {points[-1].label}, has {words(points[-1].value)}"
    highest = max(points, key=lambda p: p.value)
    text = f"{last}; the highest, {highest.label}, has {words(highest.value)}"
    parts = [
        f'<svg class="chart" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'xmlns="http://www.w3.org/2000/svg">',
        f"<title>{escape(title)}: {escape(text)}.</title>",
    ]
    for tick in ticks:
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(tick):.1f}" '
            f'y2="{y(tick):.1f}"/><text class="tick" x="{_LEFT - 8}" y="{y(tick) + 4:.1f}">'
            f"{escape(words(tick))}</text>"
        )
    line = " ".join(f"{x(i):.1f},{y(p.value):.1f}" for i, p in enumerate(drawn))
    parts.append(f'<polyline class="line" points="{line}"/>')
    radius = 3 if len(drawn) <= 60 else 2
    for number, point in enumerate(drawn):
        mark = f" {point.mark}" if point.mark else ""
        parts.append(
            f'<circle class="point{escape(mark)}" cx="{x(number):.1f}" cy="{y(point.value):.1f}" '
            f'r="{radius}"><title>{escape(f"{point.label}: {words(point.value)}")}'
            f"{' (' + escape(point.mark) + ')' if point.mark else ''}</title></circle>"
        )
    for number, anchor in ((0, "start"), (len(drawn) - 1, "end")):
        if number or anchor == "start":
            parts.append(
                f'<text class="label {anchor}" x="{x(number):.1f}" y="{_HEIGHT - 6}">'
                f"{escape(drawn[number].label)}</text>"
            )
    if each > 1:
        parts.append(
            f'<text class="label middle" x="{_LEFT + wide / 2}" y="{_HEIGHT - 6}">'
            f"highest of each {each} checkpoints</text>"
        )
    parts.append("</svg>")
    return Markup("".join(parts))


def _thin(points: Sequence[Point]) -> tuple[list[Point], int]:
    each = math.ceil(len(points) / _MOST)
    groups = [points[i : i + each] for i in range(0, len(points), each)]
    return [max(group, key=lambda p: p.value) for group in groups], each


def _ticks(highest: float, base: int) -> list[float]:
    """Three to six round numbers from zero to at least the highest.

    >>> _ticks(9, 10), _ticks(1_900_000, 1024)
    ([0, 2.0, 4.0, 6.0, 8.0, 10.0], [0, 524288.0, 1048576.0, 1572864.0, 2097152.0])
    """
    if highest <= 0:
        return [0, 1.0]
    unit = float(base) ** math.floor(math.log(highest, base)) if base != 10 else 1.0
    rough = highest / unit / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    return [0, *(step * unit * i for i in range(1, math.ceil(highest / unit / step) + 1))]
