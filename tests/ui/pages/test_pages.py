"""Every page in a real browser, over a home that real jobs have made."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.ui.homes import Homes, Truth
from tests.ui.pages.conftest import Eyes, looking

JOBS = ("running", "stopped", "crashed", "restored", "failed")
TABS = ("", "/checkpoints", "/checkpoints/history", "/checkpoints/summary")


def counts(truth: Truth) -> dict[str, tuple[str, str]]:
    """Rows in and out of each named step, from what was sent."""
    found = truth.even + truth.odd
    return {
        "orders": ("–", f"{truth.orders}"),
        "users": ("–", f"{truth.users}"),
        "users_lookup": (f"{truth.orders + truth.users}", f"{found}"),
        "even": (f"{truth.even}", f"{truth.even}"),
        "odd": (f"{truth.odd}", f"{truth.odd}"),
        "missing_users": (f"{truth.missing}", f"{truth.missing}"),
        "malformed": (f"{truth.malformed}", f"{truth.malformed}"),
    }


@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_opens_without_an_error_and_fits(
    made: Homes, browser: Browser, address: str, width: int
) -> None:
    paths = ["/", "/login"]
    paths += [f"/ui/jobs/{job}{tab}" for job in JOBS for tab in TABS]
    with looking(browser, address, width) as eyes:
        for path in paths:
            eyes.open(path)
            page = eyes.page
            assert page.locator("h1").count() == 1, path
            assert page.locator("main").count() == 1, path
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{path} is {wide} pixels wide"
            # Nothing may stand outside of what scrolls by itself.
            assert page.locator("table:not(.scroll table)").count() == 0, path
            assert page.locator("table:not(:has(caption))").count() == 0, path
        assert eyes.page.locator("a[aria-current=page]").count() == 2


@pytest.mark.parametrize("job", ["running", "stopped", "crashed", "restored"])
def test_steps_have_the_counts_of_what_was_sent(made: Homes, eyes: Eyes, job: str) -> None:
    eyes.open(f"/ui/jobs/{job}")
    truth = made.truth(job)
    shown = {row["Step"].split(" ")[0]: row for row in eyes.table("Steps")}
    for step, (came, left) in counts(truth).items():
        assert (shown[step]["Records in"], shown[step]["Records out"]) == (came, left), step
    assert shown["users_lookup"]["Side outputs"] == f"missing {truth.missing}"
    assert shown["orders"]["Side outputs"] == f"malformed {truth.malformed}"
    assert shown["users_lookup"]["State rows"] == f"{truth.users}"
    labels = eyes.page.locator(".graph text.rows.side").all_text_contents()
    assert f"missing {truth.missing}" in "".join(labels)
    boxes = eyes.page.locator(".graph g.node").all()
    texts = {box.locator("text.name").text_content(): box.text_content() or "" for box in boxes}
    assert (
        f"in {truth.orders + truth.users} · out {truth.even + truth.odd}" in texts["users_lookup"]
    )
    assert f"state {truth.users} rows" in texts["users_lookup"]


def test_the_list_shows_each_job_with_its_state(made: Homes, eyes: Eyes) -> None:
    eyes.open("/")
    shown = {row["Job name"]: row for row in eyes.table(f"{len(JOBS)} jobs")}
    states = {job: row["Status"] for job, row in shown.items()}
    assert states == {
        "running": "RUNNING",
        "stopped": "STOPPED",
        "crashed": "CRASHED",
        "restored": "FINISHED",
        "failed": "FAILED",
    }
