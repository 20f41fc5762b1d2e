"""Fewer boxes for a big graph: a picture of hundreds of steps helps nobody and slows browsers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headgate.ui.pages.drawing import Drawing, Line, Node
from headgate.ui.pages.layout import layers_of

MOST_BOXES = 60
"""Up to this many are drawn one by one."""


def collapse(drawing: Drawing, most: int = MOST_BOXES) -> Drawing:
    """The graph with at most `most` boxes; a small one stays as it is.

    First, steps in a row become one box. If that is not enough, steps of one kind that stand in
    one layer do; then neighbouring layers. Rows of lines that become one are added up.

    >>> nodes = tuple(Node(f"s{i}", "map", rows_in=5, rows_out=5) for i in range(9))
    >>> lines = tuple(Line(f"s{i}", f"s{i + 1}", rows=5) for i in range(8))
    >>> small = collapse(Drawing(nodes, lines), most=4)
    >>> [node.title for node in small.nodes], small.whole
    (['s0', '7 steps', 's8'], 9)
    """
    if len(drawing.nodes) <= most:
        return drawing
    smaller = _merge(drawing, _chains(drawing))
    if len(smaller.nodes) > most:
        smaller = _merge(smaller, _by_layer(smaller, {}))
    width = 2
    while len(smaller.nodes) > most:
        # Bands of layers: each turn doubles them, so this ends with a box a kind at the latest.
        layer = layers_of([n.id for n in smaller.nodes], _links(smaller))
        bands = {name: number // width for name, number in layer.items()}
        smaller = _merge(smaller, _by_layer(smaller, bands, kinds=False))
        width *= 2
    return replace(smaller, whole=len(drawing.nodes))


def _links(drawing: Drawing) -> list[tuple[str, str]]:
    return [(line.source, line.target) for line in drawing.lines]


def _chains(drawing: Drawing) -> dict[str, str]:
    """Steps that have one step before and one behind, by the first of their row."""
    before: dict[str, list[str]] = defaultdict(list)
    after: dict[str, list[str]] = defaultdict(list)
    for line in drawing.lines:
        before[line.target].append(line.source)
        after[line.source].append(line.target)
    inner = {n.id for n in drawing.nodes if len(before[n.id]) == 1 and len(after[n.id]) == 1}
    head: dict[str, str] = {}
    for node in drawing.nodes:
        chain = [node.id]
        if node.id not in inner:
            head[node.id] = node.id
            continue
        while before[chain[-1]][0] in inner and before[chain[-1]][0] not in head:
            chain.append(before[chain[-1]][0])
        last = before[chain[-1]][0]
        first = head[last] if last in inner else chain[-1]
        head.update(dict.fromkeys(chain, first))
    return head


def _by_layer(drawing: Drawing, bands: Mapping[str, int], kinds: bool = True) -> dict[str, str]:
    layer = bands or layers_of([n.id for n in drawing.nodes], _links(drawing))
    first: dict[tuple[int, str], str] = {}
    head = {}
    for node in drawing.nodes:
        place = (layer[node.id], node.kind if kinds else "")
        head[node.id] = first.setdefault(place, node.id)
    return head


def _merge(drawing: Drawing, head: Mapping[str, str]) -> Drawing:
    """One box for all steps with the same head. Lines inside a box go."""
    groups: dict[str, list[Node]] = defaultdict(list)
    for node in drawing.nodes:
        groups[head[node.id]].append(node)
    rows: dict[tuple[str, str, str], int | None] = {}
    came: dict[str, int | None] = {}
    read: set[str] = set()
    leaves: set[str] = set()
    for line in drawing.lines:
        source, target = head[line.source], head[line.target]
        read.add(line.source)
        if source == target:
            continue
        leaves.add(line.source)
        came[target] = _add(came.get(target), line.rows)
        key = (source, target, line.output)
        rows[key] = _add(rows.get(key), line.rows)
    nodes = []
    for first, group in groups.items():
        # What only steps in the box read does not leave it, and what two boxes read leaves it once.
        ends = [n.rows_out for n in group if n.id in leaves or n.id not in read]
        known = [number for number in ends if number is not None]
        out = sum(known) if known else None
        nodes.append(group[0] if len(group) == 1 else _together(first, group, came.get(first), out))
    lines = tuple(Line(s, t, output, number) for (s, t, output), number in rows.items())
    return replace(drawing, nodes=tuple(nodes), lines=lines)


def _add(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)


def _together(id: str, group: Sequence[Node], rows_in: int | None, rows_out: int | None) -> Node:
    kinds = sorted({kind for node in group for kind in node.kind.split(", ")})
    steps = tuple(step for node in group for step in (node.steps or (node.id,)))
    held = [n.state_rows for n in group if n.state_rows is not None]
    stored = [n.state_bytes for n in group if n.state_bytes is not None]
    worst = max((n.level for n in group), key=("", "ok", "low", "high").index)
    return Node(
        id=id,
        kind=", ".join(kinds),
        role=group[0].role if len({n.role for n in group}) == 1 else "step",
        rows_in=rows_in,
        rows_out=rows_out,
        state_rows=sum(held) if held else None,
        state_bytes=sum(stored) if stored else None,
        level=worst,
        busy=max((n.busy for n in group if n.busy is not None), default=None),
        skew=max((n.skew for n in group if n.skew is not None), default=None),
        steps=steps,
    )
