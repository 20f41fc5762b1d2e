"""Actions that are clicked really happen."""

from __future__ import annotations

import json

from playwright.sync_api import Browser, expect

from headgate.home.layout import Home
from headgate.snapshots.savepoints import savepoints
from headgate.ui.access import Access
from tests.ui.homes import Homes
from tests.ui.pages.conftest import Eyes, looking, serving
from tests.ui.pages.looks import fits_and_is_accessible


def test_a_savepoint_is_taken_and_shown(made: Homes, eyes: Eyes) -> None:
    eyes.open("/ui/jobs/running")
    page = eyes.page
    page.get_by_role("link", name="Savepoint now").click()
    expect(page.get_by_role("heading", name="Make a savepoint of running")).to_be_visible()
    expect(page.locator("main")).to_contain_text("the job keeps running")
    page.get_by_label("Label of the savepoint").fill("from_the_page")
    page.get_by_role("button", name="Make a savepoint of running").click()
    page.wait_for_url("**/operations/op-*")
    expect(page.locator("#live .badge")).to_have_text("done")
    expect(page.locator("#live")).to_contain_text("savepoint sp:from_the_page")
    (taken,) = [
        one for one in savepoints(Home(made.home).job("running")) if one.label == "from_the_page"
    ]
    assert taken.files > 0
    page.get_by_role("link", name="Savepoints", exact=True).click()
    page.wait_for_url("**/savepoints")
    count = len(savepoints(Home(made.home).job("running")))
    rows = eyes.table(f"{count} savepoint")
    assert ("sp:from_the_page", f"{taken.run}/ck:{taken.checkpoint}") in [
        (row["Savepoint"], row["Of"]) for row in rows
    ]
    # The same name again is refused, and the page says why.
    eyes.open("/ui/jobs/running/actions/savepoint")
    page.get_by_label("Label of the savepoint").fill("from_the_page")
    page.get_by_role("button", name="Make a savepoint of running").click()
    expect(page.get_by_role("alert")).to_contain_text("already has a savepoint sp:from_the_page")
    assert all("409" in line for line in eyes.wrong), eyes.wrong
    eyes.wrong.clear()
    eyes.open("/ui/jobs/running/operations")
    requests = eyes.table("Requests through this server")
    assert [row["Action"] for row in requests[:2]] == ["savepoint", "savepoint"]
    assert requests[0]["Operation"].startswith("refused: ")
    assert requests[1]["Operation"].startswith("op-")


def test_a_checkpoint_is_pinned_and_let_go(made: Homes, eyes: Eyes) -> None:
    run = Home(made.home).job("running").current()
    assert run is not None
    newest = run.checkpoint_ids()[-1]
    page = eyes.page
    for button, pins in (("Pin", [newest]), ("Unpin", [])):
        eyes.open(f"/ui/jobs/running/checkpoints/{run.id}/{newest}")
        page.get_by_role("link", name=button, exact=True).click()
        page.locator("form[data-post] button").click()
        page.wait_for_url("**/operations/ui-*")
        expect(page.locator("#live .badge")).to_have_text("done")
        assert run.pinned() == pins


def test_who_may_only_look_has_no_buttons(made: Homes, browser: Browser) -> None:
    with serving(made.home, Access(read_only=True)) as address:
        with looking(browser, address) as eyes:
            eyes.open("/ui/jobs/running")
            expect(eyes.page.locator(".bar")).to_contain_text("read only")
            assert eyes.page.locator("a[href*='/actions/']").count() == 0
            eyes.open("/ui/jobs/running/savepoints")
            assert eyes.page.locator("a[href*='/actions/']").count() == 0
            eyes.open("/ui/jobs/running/actions/cancel")
            assert eyes.page.locator("form[data-post]").count() == 0


def test_state_is_looked_into_by_key_and_compared(made: Homes, eyes: Eyes) -> None:
    """Starts Spark in a process of the server's, once."""
    eyes.open("/ui/jobs/restored/state")
    page = eyes.page
    page.get_by_role("button", name="Look").click()
    expect(page.locator("#rows table caption")).to_contain_text("7 rows", timeout=180_000)
    names = {json.loads(row["row"])["name"] for row in eyes.table("7 rows")}
    assert names == {f"u{i}" for i in range(7)}
    # Page by page: every row once, in both directions the same
    page.get_by_label("Rows a page").fill("3")
    page.get_by_role("button", name="Look").click()
    seen = []
    for size, rows in ((3, "3 rows of"), (3, "3 rows of"), (1, "1 row of")):
        expect(page.locator("#rows table tbody tr")).to_have_count(size)
        expect(page.locator("#rows caption")).to_contain_text(rows)
        seen.append([json.loads(row["row"])["name"] for row in eyes.table(rows)])
        if size == 3:
            page.get_by_role("button", name="Next rows").click()
            before = f"from row {3 * len(seen) + 1} on"
            expect(page.locator("#rows caption")).to_contain_text(before)
    assert {name for names in seen for name in names} == {f"u{i}" for i in range(7)}
    page.get_by_role("button", name="Previous rows").click()
    expect(page.locator("#rows caption")).to_contain_text("from row 4 on")
    assert [json.loads(row["row"])["name"] for row in eyes.table("3 rows of")] == seen[1]
    page.get_by_label("Contains").fill("U5")
    page.get_by_role("button", name="Look").click()
    expect(page.locator("#rows caption")).to_contain_text("1 row of")
    assert [json.loads(row["row"])["name"] for row in eyes.table("1 row of")] == ["u5"]
    page.get_by_label("Contains").fill("")
    fits_and_is_accessible(eyes, "rows of state")
    page.get_by_label("Key: id").fill("3")
    page.get_by_role("button", name="Look").click()
    expect(page.locator("#rows table caption")).to_contain_text("1 row of")
    (row,) = eyes.table("1 row of")
    assert json.loads(row["key"]) == {"id": 3}
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#rows")).to_contain_text("no difference")
