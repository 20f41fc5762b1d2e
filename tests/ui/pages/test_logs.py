"""The page of logs: search, level, what is printed meanwhile, and the file to be saved."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.ui.pages.conftest import looking, serving
from tests.ui.small_home import JOB, log_of, small_home

LOGS = f"/ui/jobs/{JOB}/logs"


def test_a_log_is_followed_searched_and_saved(tmp_path: Path, browser: Browser) -> None:
    home, log = small_home(tmp_path), log_of(tmp_path)
    log.write_text("".join(f"05:00:00 line {n}\n" for n in range(400)))
    with serving(home.url) as address, looking(browser, address) as eyes:
        page = eyes.page
        eyes.open(LOGS)
        lines = page.locator("#log li")
        expect(lines).to_have_count(300)
        expect(lines.last).to_be_in_viewport()
        with log.open("a") as out:
            out.write("WARN it grows\nand has no e")
        expect(lines.last).to_have_text("and has no e")
        with log.open("a") as out:
            out.write("nd yet\n")
        expect(lines.last).to_have_text("and has no end yet")
        expect(lines).to_have_count(302)
        expect(page.locator("#log li.warn")).to_have_text("warn: WARN it grows")
        # What is above, line by line, and back to the end
        page.get_by_role("link", name="Older lines").click()
        expect(lines).to_have_text([f"05:00:00 line {n}" for n in range(100)])
        expect(page.get_by_label("Follow")).not_to_be_checked()
        page.get_by_label("Follow").check()
        expect(lines.last).to_have_text("and has no end yet")
        # A search and a level hold for lines that come, too
        page.get_by_label("Search").fill("GROW")
        page.get_by_label("Search").press("Enter")
        expect(lines).to_have_count(1)
        page.get_by_label("Level").select_option("error")
        expect(page.locator("#log-note")).to_have_text("No line fits.")
        with log.open("a") as out:
            out.write("WARN it grows too\nERROR what grows\n  in it grows <b>this</b>\n")
        expect(lines).to_have_count(2)
        expect(lines.locator("mark")).to_have_text(["grow", "grow"])
        expect(lines.last).to_contain_text("grows <b>this</b>")
        with page.expect_download() as saving:
            page.get_by_role("link", name="Download").click()
        assert Path(saving.value.path()).read_text() == log.read_text()
