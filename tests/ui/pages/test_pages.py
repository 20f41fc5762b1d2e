"""Every page in a real browser, over a home that real jobs have made."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.homes import APP, SCRIPT, SECRET, VARIABLE, Homes, Truth
from tests.ui.pages.conftest import Eyes
from tests.ui.pages.looks import fits_and_is_accessible

JOBS = ("running", "stopped", "crashed", "restored", "failed")
TABS = (
    "",
    "/metrics",
    "/checkpoints",
    "/checkpoints/history",
    "/checkpoints/summary",
    "/checkpoints/configuration",
    "/savepoints",
    "/exceptions",
    "/watermarks",
    "/state",
    "/outputs",
    "/logs",
    "/runs",
    "/configuration",
    "/operations",
)
MORE = (
    "/ui/jobs/stopped/checkpoints/r1/1",
    "/ui/jobs/restored/checkpoints/r2/1",
    "/ui/jobs/restored/outputs?sink=malformed",
    "/ui/jobs/restored/state?snapshot=sp:before_v2",
    "/ui/jobs/restored/checkpoints/history?run=r1",
    "/ui/jobs/restored/actions/restart?snapshot=sp:before_v2",
    "/ui/jobs/running/actions/savepoint",
    "/ui/jobs/running/actions/checkpoint",
    "/ui/jobs/running/actions/stop?drain=true",
    "/ui/jobs/running/actions/cancel",
    "/ui/jobs/stopped/actions/pin?snapshot=r1/ck:1",
    "/ui/jobs/stopped/actions/verify?snapshot=sp:at_the_end",
)


def counts(truth: Truth) -> dict[str, tuple[str, str]]:
    """Rows in and out of each named step, from what was sent."""
    found = truth.even + truth.odd
    return {
        "orders": ("–", f"{truth.orders}"),
        "users": ("–", f"{truth.users}"),
        "users_lookup": (f"{truth.orders}", f"{found}"),
        "even": (f"{truth.even}", f"{truth.even}"),
        "odd": (f"{truth.odd}", f"{truth.odd}"),
        "missing_users": (f"{truth.missing}", f"{truth.missing}"),
        "malformed": (f"{truth.malformed}", f"{truth.malformed}"),
    }


def test_every_page_opens_without_an_error_fits_and_is_accessible(made: Homes, eyes: Eyes) -> None:
    paths = ["/", "/login"]
    paths += [*MORE, *(f"/ui/jobs/{job}{tab}" for job in JOBS for tab in TABS)]
    for path in paths:
        eyes.open(path)
        fits_and_is_accessible(eyes, path)


@pytest.mark.parametrize("job", ["running", "stopped", "crashed", "restored"])
def test_steps_have_the_counts_of_what_was_sent(made: Homes, eyes: Eyes, job: str) -> None:
    eyes.open(f"/ui/jobs/{job}")
    truth = made.truth(job)
    shown = {row["Step"].split(" ")[0]: row for row in eyes.table("Steps")}
    for step, (came, left) in counts(truth).items():
        assert (shown[step]["Records in"], shown[step]["Records out"]) == (came, left), step
    assert shown["users_lookup"]["Side outputs"] == f"missing {truth.missing}"
    assert shown["orders"]["Side outputs"] == f"malformed {truth.malformed}"
    assert shown["users_lookup"]["State rows, size"].startswith(f"{truth.users}, ")
    labels = eyes.page.locator(".graph text.rows.side").all_text_contents()
    assert f"missing {truth.missing}" in "".join(labels)
    boxes = eyes.page.locator(".graph g.node").all()
    texts = {box.locator("text.name").text_content(): box.text_content() or "" for box in boxes}
    assert f"in {truth.orders} · out {truth.even + truth.odd}" in texts["users_lookup"]
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
    for job in ("stopped", "crashed", "restored"):
        truth = made.truth(job)
        came = truth.orders + truth.malformed + truth.users
        left = truth.even + truth.odd + truth.missing + truth.malformed
        assert (shown[job]["Records in"], shown[job]["Records out"]) == (f"{came}", f"{left}"), job


def test_the_checkpoint_adds_up_and_names_its_offsets(made: Homes, eyes: Eyes) -> None:
    """The job `restored` read 40 orders, and in r2 after the savepoint the 20 behind them."""
    eyes.open("/ui/jobs/restored/checkpoints/r2/1")
    before, after = Truth.of(40), Truth.of(60)
    steps = {row["Step"]: row for row in eyes.table("By step")}
    assert steps["orders"]["Records out"] == f"{after.orders - before.orders}"
    assert steps["orders"]["Out, total"] == f"{after.orders}"
    assert steps["even"]["Records in"] == f"{after.even - before.even}"
    assert steps["users_lookup"]["State rows"] == f"{after.users}"
    offsets = eyes.table("Offsets of source orders")
    assert [(r["Partition"], r["Start"], r["End"], r["Behind"]) for r in offsets] == [
        ("0", "20", "30", "0"),
        ("1", "20", "30", "0"),
    ]
    parts = eyes.table("Partitions of users_lookup")
    assert [row["Partition"] for row in parts] == ["0", "1"]
    eyes.open("/ui/jobs/restored/runs")
    runs = [(row["Run"], row["Started from"]) for row in eyes.table("2 runs")]
    assert runs == [("r1", "nothing"), ("└ r2 current", "r1/ck:0 (sp:before_v2)")]


def test_a_killed_job_is_shown_as_such_with_how_to_resume(made: Homes, eyes: Eyes) -> None:
    eyes.open("/ui/jobs/crashed")
    hint = eyes.page.get_by_label("How to resume")
    expect(hint).to_contain_text("is gone without a word")
    expect(hint.locator("pre")).to_contain_text(f"headgate run {APP}:")
    expect(hint.locator("pre")).to_contain_text(f"--home {made.home}")
    # The list of parameters is for everybody's eyes, what is secret in it is not.
    expect(hint.locator("pre")).to_contain_text(f"api_token=env:{VARIABLE}")
    for tab in ("", "/configuration", "/runs"):
        eyes.open(f"/ui/jobs/crashed{tab}")
        assert SECRET not in eyes.page.content()


def test_a_failure_shows_the_users_line_first_and_what_happened_next(
    made: Homes, eyes: Eyes
) -> None:
    eyes.open("/ui/jobs/failed/exceptions")
    newest = eyes.page.locator("article").first
    expect(newest).to_contain_text("it was not restarted")
    # The message has markup in it, which is shown and not obeyed.
    expect(newest.locator("pre")).to_contain_text("sevens are not welcome <b>here</b>")
    expect(newest.locator("pre .own").last).to_contain_text("shop_app.py")
    assert eyes.page.locator("article b").count() == 0


def test_rows_with_script_in_them_are_text(made: Homes, eyes: Eyes) -> None:
    eyes.open("/ui/jobs/stopped/outputs?sink=even")
    rows = eyes.table("The last")
    assert len(rows) == made.truth("stopped").even
    assert all(SCRIPT in row["Value"] for row in rows)
    # A dialog or an error in the page would be in what went wrong.
    assert eyes.page.locator("main script").count() == 0
    expect(eyes.page.locator("main")).to_contain_text(f"{len(rows)} records in all")


def test_the_watermark_and_the_settings_say_where_they_come_from(made: Homes, eyes: Eyes) -> None:
    eyes.open("/ui/jobs/restored/watermarks")
    (orders,) = eyes.table("Sources")
    newest = max(n for n in range(60) if n % 25 != 24)
    assert orders["Watermark (ms)"] == f"{1_700_000_000_000 + newest * 1000 - 5000}"
    eyes.open("/ui/jobs/restored/configuration")
    params = {row["Name"]: row for row in eyes.table("Parameters")}
    assert params["params.api_token"]["Value"] == "******"
    assert params["params.data"]["Value"] == str(made.data["restored"].folder)
