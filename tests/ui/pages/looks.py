"""What every page must be, in both themes and at three widths: it fits, and axe finds no fault."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT

from tests.ui.pages.conftest import Eyes

WIDTHS = {"light": (1920, 1280, 400), "dark": (400, 1280, 1920)}
"""axe looks at the last of each: what scrolls where it is narrow must be reached by keyboard."""
_GRAVE = ("serious", "critical")
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN = """options => axe.run({ exclude: ["tbody tr:nth-child(n+5)", "g.node:nth-of-type(n+20)"] }, options).then(found => found.violations.map(rule => ({
  rule: rule.id, impact: rule.impact, nodes: rule.nodes.map(n => [n.html.slice(0, 200), n.failureSummary]),
})))"""  # noqa: E501


def fits_and_is_accessible(eyes: Eyes, path: str) -> None:
    """Look at the page that is open, once for each theme and width; of many rows axe sees some."""
    page = eyes.page
    assert page.locator("h1").count() == 1, path
    assert page.locator("main").count() == 1, path
    # A table has a caption, and scrolls by itself where the page is too narrow for it.
    assert page.locator("table:not(.scroll table)").count() == 0, path
    assert page.locator("table:not(:has(caption))").count() == 0, path
    page.evaluate(AXE_SCRIPT)
    for theme, widths in WIDTHS.items():
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{path} is {wide} pixels wide at {width}, {theme}"
        # Colours alone differ between the themes.
        problems = axe(eyes) if theme == "light" else axe(eyes, only="color-contrast")
        assert problems == [], f"{path} ({theme}): {problems}"
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


def axe(eyes: Eyes, only: str | None = None) -> list[Any]:
    """What axe finds wrong in the page that is open, by its rules that are serious or critical."""
    wanted = {"type": "rule", "values": [only]} if only else {"type": "tag", "values": _TAGS}
    found: list[Any] = eyes.page.evaluate(
        _RUN, {"runOnly": wanted, "resultTypes": ["violations"]}
    )  # fmt: skip
    return [problem for problem in found if problem["impact"] in _GRAVE]
