"""Where the boxes and lines of a drawn graph stand: layers from left to right, few crossings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Link = tuple[str, str]
_SWEEPS = 6
"""More than these move hardly anything in graphs of jobs."""


@dataclass(frozen=True)
class Layout:
    """The upper left corners of boxes, and for each link the points that its line goes through."""

    corners: Mapping[str, tuple[float, float]]
    bends: Mapping[Link, tuple[tuple[float, float], ...]]
    width: float
    height: float


@dataclass(frozen=True)
class Spacing:
    """Sizes in SVG units."""

    box_width: float
    between_layers: float
    between_boxes: float
    line_height: float
    """The room that a line takes where it passes between boxes."""
    margin: float = 3


def layers_of(names: Sequence[str], links: Iterable[Link]) -> dict[str, int]:
    """The layer of each box: behind all that it reads, sources right before their first reader.

    >>> layers_of(["a", "b", "c", "late"], [("a", "b"), ("b", "c"), ("late", "c")])
    {'a': 0, 'b': 1, 'c': 2, 'late': 1}
    """
    before: dict[str, list[str]] = defaultdict(list)
    after: dict[str, list[str]] = defaultdict(list)
    for left, right in links:
        before[right].append(left)
        after[left].append(right)
    layer = dict.fromkeys(names, 0)
    waiting = {name: len(before[name]) for name in names}
    ready = [name for name in names if not waiting[name]]
    done = 0
    while ready:
        name = ready.pop()
        done += 1
        for reader in after[name]:
            layer[reader] = max(layer[reader], layer[name] + 1)
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    if done < len(names):
        raise ValueError("the steps of a graph must not go round in a circle")
    for name in names:
        if not before[name] and after[name]:
            layer[name] = min(layer[reader] for reader in after[name]) - 1
    return layer


def lay_out(heights: Mapping[str, float], links: Iterable[Link], spacing: Spacing) -> Layout:
    """Give each box (a name and how high it is) its place.

    A link over several layers gets a place in each layer between, so that its line passes between
    boxes and not behind them.
    """
    names = list(heights)
    known = list(dict.fromkeys(links))
    layer = layers_of(names, known)
    tall = dict(heights)
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name in names:
        rows[layer[name]].append(name)
    paths: dict[Link, list[str]] = {}
    for number, (left, right) in enumerate(known):
        path = [left]
        for between in range(layer[left] + 1, layer[right]):
            # A name of a step cannot start with a zero byte, so these are no step's.
            place = f"\0{number}.{between}"
            tall[place] = spacing.line_height
            rows[between].append(place)
            path.append(place)
        paths[left, right] = [*path, right]
    neighbours_left: dict[str, list[str]] = defaultdict(list)
    neighbours_right: dict[str, list[str]] = defaultdict(list)
    for path in paths.values():
        for one, next_one in pairwise(path):
            neighbours_right[one].append(next_one)
            neighbours_left[next_one].append(one)

    _order(rows, neighbours_left, neighbours_right)
    middle = _heights(rows, tall, neighbours_left, neighbours_right, spacing)
    step = spacing.box_width + spacing.between_layers
    left_of = {
        name: spacing.margin + number * step for number, row in enumerate(rows) for name in row
    }
    corners = {name: (left_of[name], middle[name] - tall[name] / 2) for name in names}
    bends = {}
    for link, path in paths.items():
        points = [(left_of[path[0]] + spacing.box_width, middle[path[0]])]
        for place in path[1:-1]:
            points.append((left_of[place], middle[place]))
            points.append((left_of[place] + spacing.box_width, middle[place]))
        points.append((left_of[path[-1]], middle[path[-1]]))
        bends[link] = tuple(points)
    return Layout(
        corners,
        bends,
        width=2 * spacing.margin + max(0, len(rows) * step - spacing.between_layers),
        height=spacing.margin + max((middle[n] + tall[n] / 2 for n in middle), default=0),
    )


def _order(
    rows: list[list[str]],
    left: Mapping[str, Sequence[str]],
    right: Mapping[str, Sequence[str]],
) -> None:
    """Sort each layer by the average place of its neighbours, there and back, a few times."""
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        near = left if forward else right
        span = range(1, len(rows)) if forward else range(len(rows) - 2, -1, -1)
        for number in span:
            other = rows[number - 1 if forward else number + 1]
            place = {name: i for i, name in enumerate(other)}
            own = {name: float(i) for i, name in enumerate(rows[number])}
            for name in rows[number]:
                seen = [place[n] for n in near.get(name, ()) if n in place]
                if seen:
                    own[name] = sum(seen) / len(seen)
            rows[number].sort(key=own.__getitem__)


def _heights(
    rows: Sequence[Sequence[str]],
    tall: Mapping[str, float],
    left: Mapping[str, Sequence[str]],
    right: Mapping[str, Sequence[str]],
    spacing: Spacing,
) -> dict[str, float]:
    """The middle of each box: as near to its neighbours' middles as its layer lets it."""
    middle: dict[str, float] = {}
    for row in rows:
        top = 0.0
        for name in row:
            middle[name] = top + tall[name] / 2
            top += tall[name] + spacing.between_boxes
    for sweep in range(_SWEEPS):
        near = left if sweep % 2 == 0 else right
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = {}
            for name in row:
                seen = [middle[n] for n in near.get(name, ())]
                wanted[name] = sum(seen) / len(seen) if seen else middle[name]
            _settle(row, wanted, tall, spacing.between_boxes, middle)
    top = min((middle[name] - tall[name] / 2 for name in middle), default=0)
    return {name: y - top + spacing.margin for name, y in middle.items()}


def _settle(
    row: Sequence[str],
    wanted: Mapping[str, float],
    tall: Mapping[str, float],
    gap: float,
    middle: dict[str, float],
) -> None:
    """Place a layer's boxes near where they belong, in their order and without overlap.

    Boxes that would overlap become one block, which stands at the mean of their wanted places.
    """
    blocks: list[tuple[float, float, list[str]]] = []  # sum of wanted tops, height, names
    for name in row:
        # The wanted middle of a box, as the top that its block would then have.
        blocks.append((wanted[name] - tall[name] / 2, tall[name], [name]))
        while len(blocks) > 1:
            total, height, names = blocks[-1]
            above, height_above, names_above = blocks[-2]
            if above / len(names_above) + height_above + gap <= total / len(names):
                break
            joined = total - len(names) * (height_above + gap)
            blocks[-2:] = [
                (above + joined, height_above + gap + height, [*names_above, *names]),
            ]
    for total, _, names in blocks:
        top = total / len(names)
        for name in names:
            middle[name] = top + tall[name] / 2
            top += tall[name] + gap
