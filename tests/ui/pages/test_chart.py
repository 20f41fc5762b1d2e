"""Charts: their highest numbers are never left out, and their words are true."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from headgate.ui.pages.chart import Point, chart
from headgate.ui.pages.words import duration, size

SVG = "{http://www.w3.org/2000/svg}"


def test_a_thousand_checkpoints_are_few_points_and_the_highest_is_among_them() -> None:
    values = [100.0 + i % 7 for i in range(1000)]
    values[613] = 5000.0
    points = [Point(f"ck:{i}", value) for i, value in enumerate(values)]
    root = ET.fromstring(chart(points, "Duration", duration))
    circles = list(root.iter(f"{SVG}circle"))
    assert 100 < len(circles) <= 160
    assert "ck:613: 5.0 s" in [c.findtext(f"{SVG}title") for c in circles]
    title = root.findtext(f"{SVG}title") or ""
    assert title == (
        "Duration: 1000 checkpoints; the last, ck:999, has 105 ms; the highest, ck:613, has 5.0 s."
    )


def test_points_stand_between_the_axis_and_the_highest_line() -> None:
    points = [Point(f"ck:{i}", i * 1_000_000.0) for i in range(12)]
    root = ET.fromstring(chart(points, "Size", size, base=1024))
    grid = [float(line.get("y1") or 0) for line in root.iter(f"{SVG}line")]
    heights = [float(c.get("cy") or 0) for c in root.iter(f"{SVG}circle")]
    assert max(heights) <= max(grid) and min(heights) >= min(grid)
    assert heights == sorted(heights, reverse=True)
    ticks = [t.text for t in root.iter(f"{SVG}text") if t.get("class") == "tick"]
    assert ticks[0] == "0 B" and ticks[-1] == "15.0 MB"


def test_one_point_zeros_and_none_are_fine() -> None:
    assert chart([], "none", str) == ""
    for value in (0.0, 5.0, 0.001):
        root = ET.fromstring(chart([Point("ck:0", value)], "one", str))
        assert len(list(root.iter(f"{SVG}circle"))) == 1


def test_labels_with_script_in_them_are_text() -> None:
    svg = chart([Point("<script>", 1.0, mark="savepoint")], "<script>", str)
    assert "<script" not in svg and "&lt;script&gt;" in svg
