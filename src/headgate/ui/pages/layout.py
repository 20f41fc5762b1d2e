"""Where the boxes, lines and labels of a drawn graph stand: layers from left to right.

A line leaves its box at a place of its own and goes straight on for the width of its label, which
stands above this stretch, beside its box and no higher. Only behind all labels of a layer lines
bend and cross. So no label can lie over another label, a line, an arrow or a box.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

Link = tuple[str, str]
_SWEEPS = 6
"""More than these move hardly anything in graphs of jobs."""


@dataclass(frozen=True)
class Layout:
    """The upper left corners of boxes, and for each link the points that its line goes through."""

    corners: Mapping[str, tuple[float, float]]
    heights: Mapping[str, float]
    """Of boxes: as was asked for, or higher where many lines end."""
    bends: Mapping[Link, tuple[tuple[float, float], ...]]
    labels: Mapping[Link, tuple[float, float]]
    """Where the line begins above which a link's label stands."""
    width: float
    height: float


@dataclass(frozen=True)
class Spacing:
    """Sizes in SVG units."""

    box_width: float
    between_layers: float
    """The room in which lines bend, behind the labels."""
    between_boxes: float
    line_height: float
    """The room that a line takes where it passes between boxes."""
    margin: float = 3
    label_gap: float = 4
    """Between a label and all around it."""
    tip: float = 10
    """The height of an arrow's tip."""


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


def lay_out(
    heights: Mapping[str, float],
    links: Iterable[Link],
    spacing: Spacing,
    labels: Mapping[Link, tuple[float, float]] = MappingProxyType({}),
) -> Layout:
    """Give each box (a name and how high it is) and each label (its width and height) a place.

    A link over several layers gets a place in each layer between, so that its line passes between
    boxes and not behind them.
    """
    names = list(heights)
    known = list(dict.fromkeys(links))
    layer = layers_of(names, known)
    high = _high_enough(heights, known, spacing, labels)
    tall = dict(high)
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
    straight = _straight(len(rows), layer, spacing, labels)
    left_of: dict[str, float] = {}
    x = spacing.margin
    for row, past_labels in zip(rows, straight, strict=True):
        left_of.update(dict.fromkeys(row, x))
        x += spacing.box_width + past_labels + spacing.between_layers
    leaves, enters = _ports(paths, middle, spacing, labels)
    bends = {}
    for link, path in paths.items():
        points: list[tuple[float, float]] = []
        for number, place in enumerate(path[:-1]):
            y = middle[place] if number else leaves[link]
            edge = left_of[place] + spacing.box_width
            behind = edge + straight[layer[link[0]] + number]
            points.append((left_of[place] if number else edge, y))
            if behind > points[-1][0]:
                points.append((behind, y))
        points.append((left_of[path[-1]], enters[link]))
        bends[link] = tuple(points)
    last = straight[-1] if straight else 0
    return Layout(
        {name: (left_of[name], middle[name] - tall[name] / 2) for name in names},
        high,
        bends,
        {link: (bends[link][0][0] + spacing.label_gap, leaves[link]) for link in labels},
        width=max(2 * spacing.margin, x + spacing.margin - spacing.between_layers - last),
        height=spacing.margin + max((middle[n] + tall[n] / 2 for n in middle), default=0),
    )


def _need(link: Link, spacing: Spacing, labels: Mapping[Link, tuple[float, float]]) -> float:
    """How far a line is below the one that leaves the same box above it."""
    return labels[link][1] + spacing.label_gap if link in labels else spacing.tip


def _high_enough(
    heights: Mapping[str, float],
    links: Sequence[Link],
    spacing: Spacing,
    labels: Mapping[Link, tuple[float, float]],
) -> dict[str, float]:
    """Heights with which each line has a place at its box, and its label stands beside the box."""
    leaving: dict[str, list[float]] = defaultdict(list)
    entering: dict[str, int] = defaultdict(int)
    for link in links:
        leaving[link[0]].append(_need(link, spacing, labels))
        entering[link[1]] += 1
    found = {}
    for name, height in heights.items():
        needs = leaving[name]
        out = sum(needs) + max(needs, default=0)
        found[name] = max(height, out, spacing.tip * (entering[name] + 1))
    return found


def _straight(
    layers: int,
    layer: Mapping[str, int],
    spacing: Spacing,
    labels: Mapping[Link, tuple[float, float]],
) -> list[float]:
    """Behind each layer, how far all lines go straight on: past the longest label."""
    found = [0.0] * layers
    for (left, _), (width, _) in labels.items():
        found[layer[left]] = max(found[layer[left]], width + 2 * spacing.label_gap)
    return found


def _ports(
    paths: Mapping[Link, Sequence[str]],
    middle: Mapping[str, float],
    spacing: Spacing,
    labels: Mapping[Link, tuple[float, float]],
) -> tuple[dict[Link, float], dict[Link, float]]:
    """Where each line leaves its box and enters the next, in the order of their other ends."""
    out: dict[str, list[Link]] = defaultdict(list)
    into: dict[str, list[Link]] = defaultdict(list)
    for link in paths:
        out[link[0]].append(link)
        into[link[1]].append(link)
    leaves: dict[Link, float] = {}
    for name, links in out.items():
        links.sort(key=lambda link: middle[paths[link][1]])
        needs = [_need(link, spacing, labels) for link in links]
        y = middle[name] - sum(needs[1:]) / 2 - needs[0]
        for link, need in zip(links, needs, strict=True):
            y += need
            leaves[link] = y
    enters: dict[Link, float] = {}
    for name, links in into.items():
        links.sort(key=lambda link: middle[paths[link][-2]])
        y = middle[name] - spacing.tip * (len(links) - 1) / 2
        for number, link in enumerate(links):
            enters[link] = y + spacing.tip * number
    return leaves, enters


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
