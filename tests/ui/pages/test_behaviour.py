"""What pages do by themselves: new numbers, times, light and dark, keyboard, signing in."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Browser, expect

from headgate.ui.access import Access
from tests.ui.homes import Homes
from tests.ui.pages.conftest import Eyes, looking, serving

TOKEN = "a-token-that-nobody-guesses"


def test_new_rows_show_without_a_reload_and_what_was_opened_stays_open(
    made: Homes, eyes: Eyes
) -> None:
    eyes.open("/ui/jobs/running")
    page = eyes.page
    page.evaluate("window.sameLoad = true")
    before = made.truth("running")
    row = page.locator("#step-1")
    expect(row.locator("th")).to_contain_text("orders")
    expect(row.locator("td").nth(4)).to_have_text(str(before.orders))
    details = row.locator("details")
    details.locator("summary").click()
    made.data["running"].send(20)
    after = made.truth("running")
    assert after.orders > before.orders
    expect(row.locator("td").nth(4)).to_have_text(str(after.orders))
    assert page.evaluate("window.sameLoad") is True
    assert details.get_attribute("open") is not None
    expect(details.locator("summary")).to_be_focused()


def test_times_are_local_or_in_utc_everywhere(made: Homes, eyes: Eyes) -> None:
    eyes.open("/ui/jobs/stopped/checkpoints/history")
    page = eyes.page

    def shown() -> list[tuple[str, datetime]]:
        times = page.locator("td time").all()
        assert times
        return [
            (time.get_attribute("datetime") or "", datetime.fromisoformat(time.inner_text()))
            for time in times
        ]

    truth = {text: datetime.fromisoformat(text).replace(microsecond=0) for text, _ in shown()}
    # The tests' browser lives in Tokyo, nine hours before UTC, all year.
    hours = {at - truth[text].replace(tzinfo=None) for text, at in shown()}
    assert hours == {timedelta(hours=9)}
    page.get_by_role("button", name="Times: local").click()
    assert {at - truth[text].replace(tzinfo=None) for text, at in shown()} == {timedelta(0)}
    page.reload()
    expect(page.get_by_role("button", name="Times: UTC")).to_be_visible()
    assert {at - truth[text].replace(tzinfo=None) for text, at in shown()} == {timedelta(0)}


@pytest.mark.parametrize("system", ["light", "dark"])
def test_light_and_dark_follow_the_system_until_somebody_chooses(
    browser: Browser, address: str, system: str
) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    colours = {"light": "rgb(246, 247, 249)", "dark": "rgb(18, 22, 28)"}
    other = "dark" if system == "light" else "light"
    with looking(browser, address, color_scheme=system) as eyes:
        eyes.open("/ui/jobs")
        assert eyes.page.evaluate(back) == colours[system]
        eyes.page.locator("#theme").click()
        assert eyes.page.evaluate(back) == colours[other]
        eyes.page.reload()
        assert eyes.page.evaluate(back) == colours[other]


def test_the_keyboard_reaches_everything_and_begins_with_a_way_past_the_bar(eyes: Eyes) -> None:
    eyes.open("/ui/jobs/stopped")
    page = eyes.page
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.getAttribute('href')"))
    assert {"/ui/jobs", "/ui/jobs/stopped/checkpoints", "#step-1"} <= seen
    # What scrolls by itself can be reached, and says what it is.
    for region in page.locator(".scroll, .graph-box").all():
        assert region.get_attribute("tabindex") == "0"
        assert region.get_attribute("aria-label") or region.get_attribute("aria-labelledby")


def test_a_server_that_has_gone_is_reported_once_and_the_page_stays(
    made: Homes, browser: Browser
) -> None:
    with serving(made.home) as address:
        context = browser.new_context()
        eyes = Eyes(context.new_page(), address)
        eyes.open("/ui/jobs")
    said = eyes.page.locator("#said")
    expect(said).to_contain_text("No answer from headgate ui")
    assert len(eyes.table("5 jobs")) == 5
    context.close()


def test_who_has_the_token_signs_in_and_who_has_not_sees_nothing(
    made: Homes, browser: Browser
) -> None:
    with serving(made.home, Access(token=TOKEN)) as address:
        context = browser.new_context()
        page = Eyes(context.new_page(), address).page
        page.goto(address + "/ui/jobs/stopped")
        expect(page).to_have_url(address + "/login")
        assert str(made.home) not in page.content()
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("the token is missing or wrong")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(address + "/ui/jobs")
        expect(page.get_by_role("link", name="stopped")).to_be_visible()
        context.close()
        # The address that is printed has the token where servers and logs do not see it.
        with looking(browser, address) as eyes:
            eyes.open(f"/login#token={TOKEN}")
            expect(eyes.page).to_have_url(address + "/ui/jobs")
            eyes.page.go_back()
            assert TOKEN not in eyes.page.url


def test_what_is_not_there_is_an_error_page(eyes: Eyes) -> None:
    for path in ("/ui/jobs/nobody", "/ui/nowhere", "/ui/jobs/stopped/checkpoints/r1/999999"):
        eyes.open(path, status=404)
        expect(eyes.page.locator("h1")).to_have_text("This page cannot be shown")
    eyes.open("/ui/jobs/stopped/checkpoints/history?before=x", status=400)
    expect(eyes.page.locator("main")).to_contain_text("'before' must be a whole number")
    # Chromium itself writes a line for each page that is not there.
    assert all("Failed to load resource" in line for line in eyes.wrong)
    eyes.wrong.clear()
