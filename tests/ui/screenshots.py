"""Pictures of the pages for the documents: `make ui-screenshots` makes them from real jobs.

Paths and the name of the machine are not part of what they show, so they are written over.
"""

from __future__ import annotations

import socket
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page

from headgate.runtime.session import get_session
from tests.browser import REMEDY, open_browser
from tests.ui.homes import APP, homes
from tests.ui.metrics_home import metrics_home
from tests.ui.pages.conftest import serving

IMAGES = Path(__file__).parents[2] / "docs" / "images"
_RENAME = """pairs => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    for (const [from, to] of pairs) {
      walker.currentNode.data = walker.currentNode.data.replaceAll(from, to);
    }
  }
}"""


def main() -> int:
    """Make the home and the pictures."""
    with open_browser() as browser, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        if browser is None:
            print(f"screenshots: there is no Chromium. {REMEDY}", file=sys.stderr)
            return 1
        folder = Path(name)
        print("screenshots: running the jobs that they show", flush=True)
        with homes(folder, get_session(master="local[2]")) as made:
            for _ in range(6):
                made.data["running"].send(30)
                made.running.until_processed(made.data["running"].sent)
            with serving(metrics_home(folder / "days").url) as address:
                take_metrics(browser, address, [(str(folder / "days"), "/srv/shop/home")])
            with serving(made.home) as address:
                host = (f" on {socket.gethostname()},", " on worker-1,")
                names = [(str(folder), "/srv/shop"), (str(APP.parent), "/srv/shop"), host]
                take(browser, address, names)
    return 0


def take(browser: Browser, address: str, names: list[tuple[str, str]]) -> None:
    """All pictures."""
    IMAGES.mkdir(exist_ok=True)
    wide = {"width": 1280, "height": 800}
    page = browser.new_context(viewport=wide).new_page()
    picture(page, address, "/ui/jobs", "ui-jobs", names, height=600)
    picture(page, address, "/ui/jobs/running", "ui-overview", names, height=1050)
    summary = "/ui/jobs/running/checkpoints/summary"
    picture(page, address, summary, "ui-checkpoints", names, height=860)
    picture(page, address, "/ui/jobs/failed/exceptions", "ui-exceptions", names, height=760)
    stop = "/ui/jobs/running/actions/stop"
    picture(page, address, stop, "ui-stop", names, height=560)
    picture(page, address, "/ui/jobs/crashed/logs", "ui-logs", names, height=560)
    page.goto(f"{address}/ui/jobs/running/checkpoints/history")
    newest = page.locator("tbody th a").first.get_attribute("href") or ""
    part = "section:has(#timeline-title)"
    picture(page, address, newest, "ui-timeline", names, height=900, part=part)
    dark = browser.new_context(viewport={"width": 400, "height": 800}, color_scheme="dark")
    picture(dark.new_page(), address, "/ui/jobs/running", "ui-narrow", names, height=900)


def take_metrics(browser: Browser, address: str, names: list[tuple[str, str]]) -> None:
    """A job over time, with the crosshair where somebody points at."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, timezone_id="UTC")
    page = context.new_page()
    page.goto(f"{address}/ui/jobs/store/metrics?range=1h")
    page.locator("[data-chart=busy] canvas").wait_for()
    rename(page, names)
    page.set_viewport_size({"width": 1280, "height": 890})
    page.locator("[data-chart=latency] .plot").hover()
    save(page, "ui-metrics")


def picture(
    page: Page,
    address: str,
    path: str,
    name: str,
    names: list[tuple[str, str]],
    *,
    height: int,
    part: str | None = None,
) -> None:
    """One picture of the upper part of a page, or of a part of it."""
    page.goto(address + path)
    rename(page, names)
    width = (page.viewport_size or {"width": 1280})["width"]
    page.set_viewport_size({"width": width, "height": height})
    save(page.locator(part) if part else page, name)


def rename(page: Page, names: list[tuple[str, str]]) -> None:
    """Write over paths and names of machines."""
    page.evaluate(_RENAME, [list(pair) for pair in names])


def save(shown: Page | Locator, name: str) -> None:
    """What is shown, as a file."""
    shown.screenshot(path=IMAGES / f"{name}.png")
    print(f"screenshots: {name}.png, {(IMAGES / f'{name}.png').stat().st_size // 1024} KB")


if __name__ == "__main__":
    sys.exit(main())
