"""A job's graph as SVG text: what is drawn of a step and an edge, and how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from markupsafe import Markup, escape

from headgate.ui.model.load import level, skew_level
from headgate.ui.model.roles import Role, shape_of
from headgate.ui.pages.layout import Spacing, lay_out
from headgate.ui.pages.words import count, moment, percent, short, short_front, size

SPACING = Spacing(box_width=178, between_layers=56, between_boxes=24, line_height=16)
_LINE = 16
_LABEL_LINE = 13
_LETTER = 6.6
"""The width of a letter of a label; a wide guess, because fonts differ."""
_NAME_LENGTH = 20
_TEXT_LENGTH = 30
_KIND_LENGTH = 25


@dataclass(frozen=True)
class Node:
    """A step, or several in one box, with what is known of it; None is what nobody knows."""

    id: str
    kind: str
    detail: str = ""
    rows_in: int | None = None
    rows_out: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    watermark: datetime | None = None
    unread: tuple[tuple[str, int], ...] = ()
    """Side outputs that nobody reads, with their rows."""
    level: str = ""
    """How busy it is, in one word: ok, low or high; empty if not known."""
    busy: float | None = None
    """The share of time in which it works."""
    skew: float | None = None
    """How uneven its rows are over partitions."""
    steps: tuple[str, ...] = ()
    """The steps that this box stands for, where it is not one step alone."""
    href: str = ""
    role: Role = "step"

    @property
    def title(self) -> str:
        """Its first line."""
        return f"{len(self.steps)} steps" if self.steps else self.id


@dataclass(frozen=True)
class Line:
    """Rows that go from an output of a step into another; `rows` is None if nobody counts them."""

    source: str
    target: str
    output: str = "out"
    rows: int | None = None

    @property
    def side(self) -> bool:
        """Whether it leaves by a side output."""
        return self.output != "out"


@dataclass(frozen=True)
class Drawing:
    """What is to be drawn."""

    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]
    whole: int = field(default=0)
    """How many steps the job has, where boxes stand for several."""


def draw(drawing: Drawing, title: str) -> Markup:
    """The graph as an SVG element.

    Its looks are in the style sheet. To screen readers it is a group with a title, and a link for
    each step; the table of steps beside it says all of it.

    >>> a, b = Node("orders", "log", rows_out=5), Node("out", "log", rows_in=5)
    >>> svg = draw(Drawing((a, b), (Line("orders", "out", rows=5),)), "store")
    >>> svg.startswith("<svg") and "orders" in svg
    True
    """
    texts = {node.id: _texts(node) for node in drawing.nodes}
    heights = {node.id: 20.0 + _LINE * len(texts[node.id]) for node in drawing.nodes}
    bundles = _bundles(drawing.lines)
    labels = {link: found for link, lines in bundles.items() if (found := _labels(lines))}
    sizes = {link: _size(found) for link, found in labels.items()}
    placed = lay_out(heights, bundles, SPACING, sizes)
    width, height = round(placed.width), round(placed.height)
    parts: list[str] = [
        f'<svg class="graph" role="group" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" xmlns="http://www.w3.org/2000/svg">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for link, lines in bundles.items():
        shape = "edge side" if all(line.side for line in lines) else "edge"
        path = _curve(placed.bends[link])
        parts.append(f'<path class="{shape}" d="{path}" marker-end="url(#arrow)"/>')
    for node in drawing.nodes:
        at, high = placed.corners[node.id], placed.heights[node.id]
        parts.append(_box(node, texts[node.id], at, high))
    for link, found in labels.items():
        parts.append(_written(found, *placed.labels[link]))
    parts.append("</svg>")
    return Markup("".join(parts))


def _bundles(lines: Sequence[Line]) -> dict[tuple[str, str], list[Line]]:
    found: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        found.setdefault((line.source, line.target), []).append(line)
    return found


def _curve(points: Sequence[tuple[float, float]]) -> str:
    x, y = points[0]
    path = [f"M{x:.1f} {y:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (x0 + x1) / 2
        path.append(f"C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}")
    return "".join(path)


@dataclass(frozen=True)
class _Label:
    """Rows that go over a line; of a side output its name comes first."""

    text: str
    title: str
    side: bool


def _labels(lines: Sequence[Line]) -> list[_Label]:
    found = []
    for line in lines:
        rows = "" if line.rows is None else count(line.rows)
        text = f"{short(line.output, 12)} {rows}".strip() if line.side else rows
        if text:
            title = f"{line.source}.{line.output} to {line.target}" + (rows and f": {rows} rows")
            found.append(_Label(text, title, line.side))
    return found


def _size(labels: Sequence[_Label]) -> tuple[float, float]:
    return max(len(label.text) for label in labels) * _LETTER, float(_LABEL_LINE * len(labels))


def _written(labels: Sequence[_Label], x: float, y: float) -> str:
    """Labels above the line that begins here."""
    top = y - 4 - _LABEL_LINE * (len(labels) - 1)
    return "".join(
        f'<text class="{"rows side" if label.side else "rows"}" x="{x:.1f}" '
        f'y="{top + _LABEL_LINE * number:.1f}">{escape(label.text)}'
        f"<title>{escape(label.title)}</title></text>"
        for number, label in enumerate(labels)
    )


def _texts(node: Node) -> list[tuple[str, str, datetime | None]]:
    """The lines in a box: the class of each, its text, and the time that follows it."""
    # A step without a name of its own is called by its place, whose end says most.
    cut = short_front if "/" in node.title else short
    lines: list[tuple[str, str, datetime | None]] = [("name", cut(node.title, _NAME_LENGTH), None)]
    lines.append(("kind", _kind(node), None))
    counts = [
        f"{word} {count(rows)}"
        for word, rows in (("in", node.rows_in), ("out", node.rows_out))
        if rows is not None
    ]
    if counts:
        lines.append(("counts", " · ".join(counts), None))
    for output, rows in node.unread:
        lines.append(("unread", f"{output} {count(rows)}, read by no step", None))
    if node.state_rows is not None:
        held = f" · {size(node.state_bytes)}" if node.state_bytes is not None else ""
        lines.append(("state", f"state {count(node.state_rows)} rows{held}", None))
    if node.watermark is not None:
        lines.append(("watermark", "watermark", node.watermark))
    lines += [("level", text, None) for text in _load(node)]
    return lines


def _load(node: Node) -> list[str]:
    """How busy it is, and how uneven if that is worth a word; every colour has its word."""
    found: list[str] = []
    words = {""}
    if node.busy is not None:
        words.add(word := level(node.busy))
        found.append(f"busy {percent(node.busy)} {word}")
    if node.skew is not None and (word := skew_level(node.skew)) != "OK":
        words |= {word, "LOW"}  # it alone colours a box no more than that
        found.append(f"skew {percent(node.skew)} {word}")
    return found if node.level.upper() in words else [*found, f"load {node.level.upper()}"]


def _kind(node: Node) -> str:
    """What the step is; of an address the end says most, of all else the beginning."""
    if not node.detail:
        return node.kind
    room = _KIND_LENGTH - len(node.kind) - 3
    is_address = shape_of(node) == "end"
    detail = short_front(node.detail, room) if is_address else short(node.detail, room)
    return f"{node.kind} · {detail}"


def _box(
    node: Node,
    texts: Sequence[tuple[str, str, datetime | None]],
    corner: tuple[float, float],
    height: float,
) -> str:
    x, y = corner
    shape = "several" if node.steps else "step"
    classes = f"node {shape} level-{node.level}" if node.level else f"node {shape}"
    whole = ", ".join(node.steps) if node.steps else node.id
    title = f"{whole} ({node.kind}{' · ' if node.detail else ''}{node.detail})"
    radius = 14 if shape_of(node) == "end" else 4
    inner = [
        f"<title>{escape(title)}</title>",
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{SPACING.box_width}" height="{height:.1f}" '
        f'rx="{radius}"/>',
    ]
    for number, (kind, text, time) in enumerate(texts):
        at = ""
        if time is not None:
            at = f' <tspan data-time="{time.isoformat()}">{moment(time)}</tspan>'
        inner.append(
            f'<text class="{kind}" x="{x + 10:.1f}" y="{y + 22 + _LINE * number:.1f}">'
            f"{escape(short(text, _TEXT_LENGTH))}{at}</text>"
        )
    body = "".join(inner)
    if node.href:
        body = f'<a href="{escape(node.href)}">{body}</a>'
    return f'<g class="{classes}">{body}</g>'
