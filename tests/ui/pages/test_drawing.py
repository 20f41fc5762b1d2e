"""The picture of a graph: places, counts, script as text, and fewer boxes for many steps."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from headgate.ui.pages.collapse import MOST_BOXES, collapse
from headgate.ui.pages.drawing import SPACING, Drawing, Line, Node, draw
from headgate.ui.pages.layout import Spacing, lay_out

SVG = "{http://www.w3.org/2000/svg}"


def store() -> Drawing:
    mark = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    return Drawing(
        (
            Node("orders", "source", "log:orders", rows_out=1000),
            Node("users", "table", rows_out=50),
            Node("found", "lookup", "on user", 1050, 990, 50, 2048, mark, (("late", 3),), "high"),
            Node("enriched", "sink", rows_in=990),
            Node("missing", "sink", rows_in=7),
        ),
        (
            Line("orders", "found", rows=1000),
            Line("users", "found", rows=50),
            Line("found", "enriched", rows=990),
            Line("found", "missing", "missing", 7),
        ),
    )


def texts(element: ET.Element) -> list[str]:
    found = []
    for text in element.iter(f"{SVG}text"):
        parts = [text.text or "", *(span.text or "" for span in text.iter(f"{SVG}tspan"))]
        found.append("".join(parts))
    return found


def boxes(svg: str) -> dict[str, list[str]]:
    """The lines of text in each box, by its first."""
    root = ET.fromstring(svg)
    groups = [g for g in root.iter(f"{SVG}g") if "node" in (g.get("class") or "").split()]
    return {texts(group)[0]: texts(group) for group in groups}


def random_graph(steps: int, seed: int) -> Drawing:
    """Sources, then steps that read one or two earlier ones, each giving on half of its rows."""
    random.seed(seed)
    nodes = [Node(f"source{i}", "source", rows_out=1000) for i in range(steps // 10)]
    lines = []
    for number in range(steps - len(nodes)):
        name = f"step{number}"
        read = random.sample(nodes[-30:], k=random.choice((1, 1, 2)))
        lines += [Line(one.id, name, rows=one.rows_out) for one in read]
        rows = sum(one.rows_out or 0 for one in read)
        kind = random.choice(("select", "filter", "lookup"))
        nodes.append(Node(name, kind, rows_in=rows, rows_out=rows // 2))
    return Drawing(tuple(nodes), tuple(lines))


def test_a_box_tells_rows_state_watermark_load_and_outputs_that_nobody_reads() -> None:
    drawn = boxes(draw(store(), "store"))
    assert drawn["found"] == [
        "found",
        "lookup · on user",
        "in 1,050 · out 990",
        "late 3, read by no step",
        "state 50 rows · 2.0 KB",
        "watermark 2026-01-02 03:04:05",
        "load HIGH",
    ]
    assert drawn["orders"] == ["orders", "source · log:orders", "out 1,000"]


def test_a_box_has_a_word_for_each_colour() -> None:
    nodes = (
        Node("calm", "where", busy=0.05, skew=0.1, level="ok"),
        Node("busy", "where", busy=0.6, skew=0.3, level="high"),
        Node("late", "where", busy=0.05, level="high"),
    )
    drawn = boxes(draw(Drawing(nodes, ()), "loads"))
    assert drawn["calm"][2:] == ["busy 5 % OK"]
    assert drawn["busy"][2:] == ["busy 60 % HIGH", "skew 30 % LOW"]
    assert drawn["late"][2:] == ["busy 5 % OK", "load HIGH"]


def test_edges_tell_their_rows_and_those_of_side_outputs_look_different() -> None:
    root = ET.fromstring(draw(store(), "store"))
    paths = [p.get("class") for p in root.iter(f"{SVG}path") if p.get("marker-end")]
    assert paths == ["edge", "edge", "edge", "edge side"]
    labels = [t for t in root.iter(f"{SVG}text") if (t.get("class") or "").startswith("rows")]
    assert [(t.get("class"), t.text) for t in labels] == [
        ("rows", "1,000"),
        ("rows", "50"),
        ("rows", "990"),
        ("rows side", "missing 7"),
    ]
    assert labels[3].findtext(f"{SVG}title") == "found.missing to missing: 7 rows"


def test_names_with_script_in_them_are_text() -> None:
    evil = '<script>alert("1")</script>'
    nodes = (Node(evil, evil, evil, rows_out=1, href=f'/jobs/"{evil}'), Node("b", "sink"))
    svg = draw(Drawing(nodes, (Line(evil, "b", evil, 1),)), evil)
    assert "<script" not in svg
    root = ET.fromstring(svg)
    assert root.findtext(f"{SVG}title") == evil
    link = root.find(f".//{SVG}a")
    assert link is not None and set(link.attrib) == {"href"}


@pytest.mark.parametrize("seed", range(5))
def test_boxes_never_overlap_and_lines_go_from_left_to_right(seed: int) -> None:
    graph = random_graph(50, seed)
    heights = {node.id: float(40 + 13 * (i % 4)) for i, node in enumerate(graph.nodes)}
    links = [(line.source, line.target) for line in graph.lines]
    spacing = Spacing(100, 50, 10, 8)
    placed = lay_out(heights, links, spacing)
    for link, points in placed.bends.items():
        assert all(a[0] < b[0] for a, b in pairwise(points)), link
    columns: dict[float, list[tuple[float, float]]] = {}
    for name, (x, y) in placed.corners.items():
        assert 0 <= x <= placed.width - spacing.box_width
        assert 0 <= y <= placed.height - heights[name]
        columns.setdefault(x, []).append((y, y + heights[name]))
    for spans in columns.values():
        for above, below in pairwise(sorted(spans)):
            assert above[1] + spacing.between_boxes <= below[0] + 1e-6


def drawn_points(bends: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Points of the curve that is drawn through these, a few pixels apart."""
    for (x0, y0), (x1, y1) in pairwise(bends):
        for step in range(41):
            t = step / 40
            bend = 3 * t * (1 - t)
            middle = (x0 + x1) / 2
            x = (1 - t) ** 3 * x0 + bend * middle + t**3 * x1
            yield x, y0 + (y1 - y0) * (3 * t**2 - 2 * t**3)


@pytest.mark.parametrize("seed", range(5))
def test_no_label_lies_over_a_line_a_box_or_another_label(seed: int) -> None:
    graph = random_graph(60, seed)
    heights = {node.id: float(40 + 13 * (i % 4)) for i, node in enumerate(graph.nodes)}
    links = list(dict.fromkeys((line.source, line.target) for line in graph.lines))
    sizes = {link: (random.uniform(8, 150), random.choice((13.0, 26.0))) for link in links[::2]}
    placed = lay_out(heights, links, SPACING, sizes)
    taken = {}  # left, top, right, bottom of each label; its own line is at its bottom
    for link, (x, y) in placed.labels.items():
        width, height = sizes[link]
        taken[link] = (x, y - height - 1, x + width, y - 0.5)
    boxes = [
        (x, y, x + SPACING.box_width, y + placed.heights[name])
        for name, (x, y) in placed.corners.items()
    ]
    every = [*taken.values(), *boxes]
    for label in taken.values():
        over = [b for b in every if b != label and label[0] < b[2] and b[0] < label[2]
                and label[1] < b[3] and b[1] < label[3]]  # fmt: skip
        assert over == []
    for link, bends in placed.bends.items():
        # the arrow's tip, too: a few pixels above and below the end of its line
        (x, y) = bends[-1]
        tip = [(x - back, y + side) for back in (0, 5, 10) for side in (-5, 0, 5)]
        for at, (left, top, right, bottom) in taken.items():
            hidden = [p for p in (*drawn_points(bends), *tip)
                      if left < p[0] < right and top < p[1] < bottom]  # fmt: skip
            assert hidden == [], (link, at)


def test_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="circle"):
        lay_out({"a": 1.0, "b": 1.0}, [("a", "b"), ("b", "a")], SPACING)


def test_a_graph_without_steps_is_an_empty_picture() -> None:
    assert ET.fromstring(draw(Drawing((), ()), "none")).get("class") == "graph"


def test_few_steps_are_drawn_one_by_one() -> None:
    assert collapse(store()) == store()


@pytest.mark.parametrize("seed", range(8))
def test_200_steps_collapse_and_no_row_is_lost(seed: int) -> None:
    graph = random_graph(200, seed)
    small = collapse(graph)
    assert len(small.nodes) <= MOST_BOXES and small.whole == 200
    stands_for = [step for node in small.nodes for step in (node.steps or (node.id,))]
    assert sorted(stands_for) == sorted(node.id for node in graph.nodes)
    # Each line between two boxes has the rows of all lines that it stands for.
    box_of = {step: n.id for n in small.nodes for step in (n.steps or (n.id,))}
    truth: dict[tuple[str, str], int] = {}
    for line in graph.lines:
        ends = (box_of[line.source], box_of[line.target])
        if ends[0] != ends[1]:
            truth[ends] = truth.get(ends, 0) + (line.rows or 0)
    assert {(line.source, line.target): line.rows for line in small.lines} == truth
    ET.fromstring(draw(small, "many"))


def test_a_long_row_of_steps_becomes_one_box_with_its_first_and_last_count() -> None:
    nodes = [Node(f"s{i}", "filter", rows_in=1000 - i, rows_out=999 - i) for i in range(1, 199)]
    ends = (Node("in", "source", rows_out=999), Node("out", "sink", rows_in=801))
    lines = [Line(f"s{i}", f"s{i + 1}", rows=999 - i) for i in range(1, 198)]
    lines += [Line("in", "s1", rows=999), Line("s198", "out", rows=801)]
    # Steps stand in any order in a graph.
    random.Random(1).shuffle(nodes)
    small = collapse(Drawing((*nodes, *ends), tuple(lines)))
    drawn = boxes(draw(small, "row"))
    assert sorted(drawn) == ["198 steps", "in", "out"]
    assert drawn["198 steps"][2] == "in 999 · out 801"


def test_what_two_boxes_read_leaves_a_box_once() -> None:
    sources = [Node(f"source{i}", "source", rows_out=10) for i in range(40)]
    sinks = [Node(f"{kind}{i}", kind, rows_in=10) for i in range(40) for kind in ("a", "b")]
    lines = [Line(f"source{i}", f"{kind}{i}", rows=10) for i in range(40) for kind in ("a", "b")]
    drawn = draw(collapse(Drawing((*sources, *sinks), tuple(lines))), "both")
    root = [texts(g) for g in ET.fromstring(drawn).iter(f"{SVG}g")]
    assert sorted(root) == [
        ["40 steps", "a", "in 400"],
        ["40 steps", "b", "in 400"],
        ["40 steps", "source", "out 400"],
    ]
