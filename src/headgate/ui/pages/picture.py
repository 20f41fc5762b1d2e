"""The graph of the read model as something to draw: which numbers stand on its boxes and lines."""

from __future__ import annotations

from markupsafe import Markup

from headgate.ui.model.graph import GraphView, NodeView
from headgate.ui.model.roles import is_sink
from headgate.ui.model.slow import Hint
from headgate.ui.pages.collapse import MOST_BOXES, collapse
from headgate.ui.pages.drawing import Drawing, Line, Node, draw

LEVELS = ("", "ok", "low", "high")
"""How busy a step is, the least first."""
MOST_OF_ALL = 400
"""At most this many boxes are drawn for every step; a picture of more helps nobody."""


def picture(
    graph: GraphView, hints: tuple[Hint, ...], title: str, *, every_step: bool
) -> tuple[Markup, int]:
    """The graph as SVG, and how many steps share boxes (0 if none do)."""
    whole = drawing(graph, hints)
    shown = collapse(whole, MOST_OF_ALL if every_step else MOST_BOXES)
    together = sum(len(node.steps) for node in shown.nodes)
    return draw(shown, f"Graph of {title}: {len(whole.nodes)} steps"), together


def drawing(graph: GraphView, hints: tuple[Hint, ...]) -> Drawing:
    """All boxes and lines."""
    load = {hint.step: hint.level.lower() for hint in reversed(hints) if hint.step}
    read = {(edge.source, edge.output) for edge in graph.edges}
    nodes = (
        _node(node, number, load.get(node.id, ""), read)
        for number, node in enumerate(graph.nodes, start=1)
    )
    lines = (Line(e.source, e.target, e.output, e.records) for e in graph.edges)
    return Drawing(tuple(nodes), tuple(lines))


def _node(node: NodeView, number: int, level: str, read: set[tuple[str, str]]) -> Node:
    unread = tuple(
        (side.output, side.records)
        for side in node.side
        if side.records and (node.id, side.output) not in read
    )
    return Node(
        id=node.id,
        kind=node.kind,
        role=node.role,
        detail=node.description,
        rows_in=node.records_in,
        rows_out=None if is_sink(node) else node.records_out,
        state_rows=node.state_rows,
        state_bytes=node.state_bytes,
        watermark=node.watermark,
        unread=unread,
        level=_worst(level, (node.busy_level or "").lower()),
        busy=node.busy_share,
        skew=node.skew,
        href=f"#step-{number}",
    )


def _worst(*levels: str) -> str:
    return max(levels, key=LEVELS.index)
