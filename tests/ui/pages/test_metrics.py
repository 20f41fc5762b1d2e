"""The page of a job over time: charts that move together, zoom, follow the job, and a table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.ui.homes import Homes
from tests.ui.metrics_home import END, FAILED, HOUR, JOB, STOPPED, metrics_home
from tests.ui.pages.conftest import Eyes, looking, serving

PAGE = f"/ui/jobs/{JOB}/metrics"


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over a home whose job ran for a day and a half."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda handle: None)
        home = metrics_home(tmp_path_factory.mktemp("metrics"), days=1.5)
    with serving(home.url) as address:
        yield address


@pytest.fixture
def eyes(browser: Browser, days: str) -> Iterator[Eyes]:
    with looking(browser, days) as found:
        yield found


def rest(eyes: Eyes, query: str) -> dict[str, Any]:
    answer = eyes.page.request.get(f"{eyes.address}/jobs/{JOB}/metrics?{query}")
    assert answer.ok, answer.text()
    found: dict[str, Any] = answer.json()
    return found


def legend(eyes: Eyes, chart: str) -> Locator:
    return eyes.page.locator(f"[data-chart={chart}] .legend b")


def test_one_crosshair_shows_the_numbers_of_one_time_on_all_charts(eyes: Eyes) -> None:
    with eyes.page.expect_response(f"**/jobs/{JOB}/metrics?range=1h&points=*") as answer:
        eyes.open(f"{PAGE}?range=1h")
    page, data = eyes.page, answer.value.json()
    plots = page.locator(".plot:visible")
    expect(plots.locator("canvas")).to_have_count(8)
    moment = page.locator("#moment")
    expect(moment).to_contain_text("Point at a chart")
    plots.nth(1).hover()
    expect(moment).to_contain_text(" a point")
    expect(page.locator(".u-cursor-x:not(.u-off)")).to_have_count(8)
    # the browser is in Tokyo; each number is the one that REST gives for that time
    local = datetime.fromisoformat(moment.inner_text().split(" · ")[0])
    at = local.replace(tzinfo=timezone(timedelta(hours=9))).timestamp()
    n = data["timestamps"].index(round(at * 1000))
    taken, given = data["numRecordsInPerSecond"][n], data["numRecordsOutPerSecond"][n]
    assert legend(eyes, "throughput").all_inner_texts() == [str(round(taken)), str(round(given))]
    assert legend(eyes, "batch").first.inner_text() == f"{data['batch_ms'][n]:.3g} ms"
    # two sinks behind one source are one line
    names = page.locator("[data-chart=latency] .legend li").all_inner_texts()
    assert [name.rsplit(" ", 2)[0] for name in names] == [
        "even, odd 99 %", "even, odd 50 %", "malformed 99 %", "malformed 50 %"
    ]  # fmt: skip


def test_a_drag_zooms_all_charts_and_back_undoes_it(eyes: Eyes) -> None:
    eyes.open(f"{PAGE}?range=6h")
    page = eyes.page
    canvas = page.locator("[data-chart=pending] .u-over")
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 50, steps=5)
    page.mouse.up()
    page.wait_for_url("**start=*")
    shown = dict(part.split("=") for part in page.url.split("?")[1].split("&"))
    start, end = (int(shown[name]) / 1000 for name in ("start", "end"))
    assert abs(start - (END - 3 * HOUR)) < 300
    assert abs(end - (END - 1.5 * HOUR)) < 300
    # the table has followed, and says the times of the range
    expect(page.locator("#range")).to_contain_text("Zoom out")
    page.go_back()
    expect(page.locator("#range [aria-current=page]")).to_have_text("6 h")


def test_the_keyboard_moves_the_crosshair_and_says_what_is_there(eyes: Eyes) -> None:
    eyes.open(f"{PAGE}?start={(FAILED - 300) * 1000}&end={(FAILED + 300) * 1000}")
    page = eyes.page
    page.locator("[data-chart=busy] .plot canvas").wait_for()
    page.locator("[data-chart=throughput] .plot").focus()
    page.keyboard.press("Home")
    said = page.locator("#said")
    expect(said).to_contain_text("in ")
    seen = []
    for _ in range(200):
        page.keyboard.press("ArrowRight")
        seen.append(said.inner_text())
        if "restarted" in seen[-1]:
            break
    assert any("failed" in text for text in seen)
    assert any("did not run" in text and "in –" in text for text in seen)
    page.keyboard.press("Escape")
    expect(page.locator("#moment")).to_contain_text("Point at a chart")
    page.keyboard.press("-")
    page.wait_for_url(f"**start={(FAILED - 600) * 1000}*")


def test_what_happened_and_where_it_did_not_run_is_in_rest_and_in_the_table(eyes: Eyes) -> None:
    data = rest(eyes, "range=all&points=2000")
    marks = {one["timestamp"] // 1000: one["events"] for one in data["marks"]}
    step = data["step"]
    for at, kind in ((STOPPED[0], "crashed"), (STOPPED[1], "started"), (FAILED, "failed")):
        assert kind in marks[at // step * step]
    for at, ran in zip(data["timestamps"], data["running"], strict=True):
        down = STOPPED[0] <= at / 1000 < STOPPED[1]
        assert ran is not down, at
    eyes.open(f"{PAGE}?range=all")
    rows = eyes.table("Metrics, ")
    assert any("crashed" in row["What happened"] for row in rows)
    quiet = [row for row in rows if row["What happened"].startswith("did not run")]
    assert quiet
    assert {row["Records in /s"] for row in quiet} == {"–"}
    eyes.open(f"{PAGE}?range=2h", status=400)
    assert all("Failed to load resource" in line for line in eyes.wrong)
    eyes.wrong.clear()


@pytest.mark.parametrize("width", [400, 1920])
def test_charts_fit_and_take_the_colours_of_the_theme(
    browser: Browser, days: str, width: int
) -> None:
    with looking(browser, days, width, color_scheme="dark") as eyes:
        eyes.open(f"{PAGE}?range=24h")
        page = eyes.page
        canvas = page.locator("[data-chart=batch] canvas")
        canvas.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        dark = canvas.evaluate("canvas => canvas.toDataURL()")
        page.locator("#theme").click()
        assert canvas.evaluate("canvas => canvas.toDataURL()") != dark
        page.set_viewport_size({"width": 700, "height": 900})
        card = page.locator("[data-chart=batch] .plot")
        expect(card.locator(".uplot")).to_have_css(
            "width", f"{card.evaluate('e => e.clientWidth')}px"
        )


def test_charts_follow_a_job_that_runs(made: Homes, browser: Browser, address: str) -> None:
    with looking(browser, address) as eyes:
        eyes.open("/ui/jobs/running/metrics?range=15m")
        eyes.page.evaluate("window.sameLoad = true")
        expect(legend(eyes, "throughput").first).to_have_text("0")
        made.data["running"].send(20)
        expect(legend(eyes, "throughput").first).not_to_have_text("0")
        assert eyes.page.evaluate("window.sameLoad") is True
        made.running.until_processed(made.data["running"].sent)
