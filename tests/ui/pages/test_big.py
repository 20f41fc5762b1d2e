"""A job of 200 steps, and one with many checkpoints: pages stay small enough for a browser."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from headgate.graph.model import Edge, Graph, Step
from headgate.home.layout import Home
from headgate.home.model import CheckpointRecord
from headgate.home.offsets import SourceOffsets
from headgate.ui.pages.collapse import MOST_BOXES
from tests.ui.pages.conftest import Eyes, looking, serving
from tests.ui.pages.looks import fits_and_is_accessible

LINES, ROWS, CHECKPOINTS = 40, 10, 300
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def graph(lines: int) -> Graph:
    """Lines of five steps; every other lookup also reads the source of the line before."""
    steps: list[Step] = []
    for i in range(lines):
        read = [Edge(f"in{i}"), *([Edge(f"in{i - 1}")] if i % 2 else [])]
        steps += [
            Step(f"in{i}", "source", True, role="source"),
            Step(f"join{i}", "lookup", True, tuple(read), stateful=True),
            Step(f"keep{i}", "where", True, (Edge(f"join{i}"),)),
            Step(f"short{i}", "select", True, (Edge(f"keep{i}"),), one_for_one=True),
            Step(f"out{i}", "sink", True, (Edge(f"short{i}"),), outputs=(), role="sink"),
        ]
    return Graph("big", tuple(steps), tuple(f"in{i}" for i in range(lines)))


def record(id: int, job: Graph) -> CheckpointRecord:
    rows = {}
    for step in job.steps:
        came = {"records_in": ROWS * len(step.inputs)} if step.inputs else {}
        rows[step.id] = {**came, "records_out": ROWS}
    totals = {s: {n: v * (id + 1) for n, v in counts.items()} for s, counts in rows.items()}
    began = BEGAN + timedelta(seconds=id)
    offsets = SourceOffsets({"0": ROWS * id}, {"0": ROWS * (id + 1)}, {"0": ROWS * (id + 1)})
    return CheckpointRecord(
        id=id, run="r1", status="COMPLETED", type="periodic", triggered_at=began,
        completed_at=began + timedelta(milliseconds=100 + id), duration_ms=100 + id,
        phases={"execution": 100 + id}, rows=rows, totals=totals,
        state={s.id: {"rows": id, "bytes": 100 * id} for s in job.steps if s.stateful},
        sources=dict.fromkeys(job.sources, offsets),
    )  # fmt: skip


def write(home: Home, name: str, job: Graph, checkpoints: int) -> None:
    found = home.job(name)
    run = found.new_run(
        graph=job.to_json(), graph_fingerprint=job.fingerprint(), parallelism=2,
        params={}, versions={}, code={},
    )  # fmt: skip
    found.set_current(run.id)
    run.add_event("started", how="new", bounded=False, master="local[1]", pid=1, params={})
    for id in range(checkpoints):
        run.write_checkpoint(record(id, job))


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("big")
    write(Home(folder), "wide", graph(LINES), checkpoints=2)
    write(Home(folder), "long", graph(1), CHECKPOINTS)
    with serving(folder) as address:
        yield address


@pytest.fixture
def eyes(browser: Browser, big: str) -> Iterator[Eyes]:
    with looking(browser, big) as found:
        yield found


def test_the_graph_collapses_unless_somebody_wants_every_step(eyes: Eyes) -> None:
    eyes.open("/ui/jobs/wide")
    page = eyes.page
    assert page.locator(".graph g.node").count() <= MOST_BOXES
    steps = eyes.table("Steps")
    assert len(steps) == 5 * LINES
    sent = f"{2 * ROWS}"
    assert {row["Records out"] for row in steps} == {sent}
    # Each source is one of those that stand in boxes together, and no row is lost in them.
    sinks = page.locator(".graph g.node", has_text="sink").locator("text.counts").all()
    held = [int((text.text_content() or "").removeprefix("in ").replace(",", "")) for text in sinks]
    assert sum(held) == LINES * 2 * ROWS
    page.get_by_role("link", name="Draw every step").click()
    page.wait_for_url("**graph=all")
    assert page.locator(".graph g.node").count() == 5 * LINES


def test_a_large_graph_moves_zooms_and_fits_by_mouse_and_keyboard(eyes: Eyes) -> None:
    eyes.open("/ui/jobs/wide?graph=all")
    page, box = eyes.page, eyes.page.locator("#graph-box")
    node = page.locator(".graph g.node").first

    def width() -> float:
        return float((node.bounding_box() or {})["width"])

    def scrolled() -> tuple[float, float]:
        left, top = box.evaluate("box => [box.scrollLeft, box.scrollTop]")
        return left, top

    def whole_is_seen() -> bool:
        return bool(box.evaluate(
            "box => box.scrollWidth <= box.clientWidth && box.scrollHeight <= box.clientHeight"
        ))  # fmt: skip

    opened = width()
    assert not whole_is_seen()  # so small that nobody could read it
    page.get_by_role("button", name="Fit").click()
    assert whole_is_seen() and width() < opened
    fitted = width()
    box.focus()
    page.keyboard.press("1")
    full = width()
    assert full >= opened and not whole_is_seen()
    page.keyboard.press("+")
    assert width() > full
    page.keyboard.press("-")
    assert width() == pytest.approx(full, rel=0.01)
    # A press that moves the graph opens nothing.
    page.keyboard.press("+")
    page.keyboard.press("+")
    box.evaluate("box => box.scrollTo(0, 0)")
    at = node.bounding_box()
    area = box.bounding_box()
    assert at is not None and area is not None
    x, y = at["x"] + 20, min(at["y"], area["y"] + area["height"] - 30) + 10
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 30, y - 120, steps=4)
    page.mouse.up()
    assert scrolled() == (30, 120)
    assert "#" not in page.url
    # What was at the wheel stays there, and new numbers do not change the scale.
    page.mouse.move(area["x"] + 300, area["y"] + 200)
    page.keyboard.down("Control")
    page.mouse.wheel(0, 200)
    page.keyboard.up("Control")
    expect(box).not_to_have_js_property("scrollTop", 120)
    assert fitted < width()
    page.keyboard.press("0")
    assert width() == pytest.approx(fitted, rel=0.01)


@pytest.mark.parametrize("job", ["wide", "wide?graph=all"])
def test_labels_of_a_large_graph_hide_nothing(eyes: Eyes, job: str) -> None:
    """As the browser measures them, with the font that it has."""
    eyes.open(f"/ui/jobs/{job}")
    found = eyes.page.evaluate(_HIDDEN)
    assert found["labels"] > 3 and found["hidden"] == []


_HIDDEN = """() => {
  const svg = document.querySelector("svg.graph");
  const labels = [...svg.querySelectorAll("text.rows")].map(t => [t.textContent, t.getBBox()]);
  const inside = (b, x, y) => b.x < x && x < b.x + b.width && b.y < y && y < b.y + b.height - 2;
  const hidden = [];
  for (const path of svg.querySelectorAll("path.edge")) {
    const length = path.getTotalLength();
    for (let at = 0; at <= length; at += 6) {
      const { x, y } = path.getPointAtLength(at);
      for (const [text, box] of labels) if (inside(box, x, y)) hidden.push([text, "line", x, y]);
    }
  }
  const boxes = [...svg.querySelectorAll("rect")].map(r => r.getBBox());
  const over = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width
    && a.y < b.y + b.height && b.y < a.y + a.height;
  labels.forEach(([text, a], i) => {
    for (const b of boxes) if (over(a, b)) hidden.push([text, "box"]);
    labels.slice(i + 1).forEach(([other, b]) => over(a, b) && hidden.push([text, other]));
  });
  return { labels: labels.length, hidden };
}"""


def test_every_page_of_a_large_job_fits_and_is_accessible(eyes: Eyes) -> None:
    for path in (
        "/ui/jobs/wide",
        "/ui/jobs/wide?graph=all",
        "/ui/jobs/wide/checkpoints/r1/1",
        "/ui/jobs/wide/watermarks",
        "/ui/jobs/wide/state",
        "/ui/jobs/wide/outputs",
    ):
        eyes.open(path)
        fits_and_is_accessible(eyes, path)


def test_the_history_goes_by_pages_and_charts_have_few_points(eyes: Eyes) -> None:
    eyes.open("/ui/jobs/long/checkpoints/history")
    seen = [row["ID"] for row in eyes.table("50 of 300 checkpoints")]
    eyes.page.get_by_role("link", name="Older than ck:250").click()
    eyes.page.wait_for_url("**before=250")
    seen += [row["ID"] for row in eyes.table("50 of 300 checkpoints")]
    assert seen == [f"ck:{id}" for id in range(299, 199, -1)]
    eyes.open("/ui/jobs/long/checkpoints/summary")
    shown = {row["Statistic"]: row["End to end duration"] for row in eyes.table("300 completed")}
    assert (shown["Minimum"], shown["Maximum"]) == ("100 ms", "399 ms")
    assert (shown["50 % percentile"], shown["99 % percentile"]) == ("249 ms", "396 ms")
    points = eyes.page.locator("svg.chart").first.locator("circle").count()
    assert 100 < points <= 160
