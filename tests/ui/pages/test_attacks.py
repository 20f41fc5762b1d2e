"""Attacks on the pages: script in names and rows, ids that lead elsewhere, what a look leaves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from starlette.testclient import TestClient

from headgate.ui.app import create_app
from headgate.ui.pages.routes import PAGES
from tests.ui.pages.conftest import looking, serving
from tests.ui.small_home import EVIL, EVIL_ROW, JOB, small_home

IDS = {"{job}": JOB, "{run}": "r1", "{checkpoint}": "1", "{action}": "savepoint"}
ELSEWHERE = (
    "..%2f..%2fsecret",
    "%2e%2e",
    "....%2f%2fsecret",
    "store%00",
    "..%5c..%5csecret",
    "file:%2f%2f%2fetc%2fpasswd",
    "-rf",
    "1%0a",
    "²",
    "9" * 40,
    "<script>",
)


def paths() -> list[str]:
    """Every page, with the ids of the small home; its operation has an id of its own."""
    found = [path for path in PAGES if "{operation}" not in path]
    for name, id in IDS.items():
        found = [path.replace(name, id) for path in found]
    assert not [path for path in found if "{" in path]
    return [f"/ui{path}" for path in found]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    (tmp_path / "secret").write_text("top secret")
    app = create_app(small_home(tmp_path))
    with TestClient(app, base_url="http://127.0.0.1:8181") as found:
        yield found


class Reader(HTMLParser):
    """Collects what a strict policy does not allow, and the addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.inline: list[str] = []
        self.loads: set[str] = set()
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        bad = [name for name in given if name == "style" or name.startswith("on")]
        self.inline += [f"<{tag} {name}>" for name in bad]
        if tag == "style" or (tag == "script" and not given.get("src")):
            self.inline.append(f"<{tag}>")
        for name in ("src",) if tag != "link" else ("href",):
            if given.get(name):
                self.loads.add(str(given[name]))
        links = [given.get(name) or "" for name in ("href", "action", "formaction")]
        self.inline += [link for link in links if link.lower().startswith("javascript:")]


def test_script_in_names_messages_and_rows_is_text(tmp_path: Path, browser: Browser) -> None:
    with serving(small_home(tmp_path).url) as address, looking(browser, address) as eyes:
        seen = ""
        for path in paths():
            eyes.open(path)
            assert eyes.page.locator("main script, main img").count() == 0, path
            seen += eyes.page.locator("main").text_content() or ""
        assert EVIL in seen and EVIL_ROW in seen


def test_pages_keep_to_the_policy_and_load_only_what_is_here(client: TestClient) -> None:
    loads = set()
    for path in [*paths(), "/login", "/ui/nowhere"]:
        response = client.get(path)
        policy = response.headers["Content-Security-Policy"]
        assert "'unsafe" not in policy and "script-src 'self'" in policy
        assert response.headers["Cache-Control"] == "no-store"
        reader = Reader()
        reader.feed(response.text)
        assert reader.inline == [], path
        loads |= reader.loads
    assert {load.partition("?")[0].rpartition("/")[2] for load in loads} >= {
        "headgate.css", "icon.svg", "theme.js", "headgate.js", "graph.js", "logs.js", "state.js"
    }  # fmt: skip
    for asset in loads:
        assert re.fullmatch(r"/static/[A-Za-z./]+\?[0-9a-f]{10}", asset), asset
        assert client.get(asset).status_code == 200


def test_ids_that_lead_elsewhere_are_not_found(client: TestClient, tmp_path: Path) -> None:
    tried = 0
    for path in PAGES:
        for part in re.findall(r"\{\w+\}", path):
            for id in ELSEWHERE:
                target = path.replace(part, id)
                for name, usual in {**IDS, "{operation}": "op-000000"}.items():
                    target = target.replace(name, usual)
                response = client.get(f"/ui{target}")
                assert response.status_code == 404, target
                assert "top secret" not in response.text
                tried += 1
    assert tried > 200


@pytest.mark.parametrize(
    "target",
    [
        "checkpoints/history?run=../../secret",
        "checkpoints?run=r999",
        "outputs?sink=../../secret",
        "outputs?sink=orders",
        "logs?file=../../secret",
        "logs?file=..%2f..%2f..%2fsecret",
        "logs?level=all",
        "logs?before=-1",
        "state?snapshot=/etc",
        "state?snapshot=other@latest",
        "state?snapshot=file:///tmp",
        "actions/verify?snapshot=../../secret",
        "actions/pin?snapshot=sp:..",
        "actions/verify",
        "exceptions?limit=-1",
        "checkpoints/history?before=1e3",
    ],
)
def test_questions_that_lead_elsewhere_are_refused(client: TestClient, target: str) -> None:
    response = client.get(f"/ui/jobs/{JOB}/{target}")
    assert response.status_code in (400, 404)
    assert "top secret" not in response.text and "This page cannot be shown" in response.text


def test_looking_at_pages_changes_nothing(client: TestClient, tmp_path: Path) -> None:
    def files() -> dict[str, tuple[int, int]]:
        found = [path for path in tmp_path.rglob("*") if path.is_file()]
        return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in found}

    before = files()
    actions = ("savepoint", "checkpoint", "stop", "cancel", "restart")
    more = [f"/ui/jobs/{JOB}/actions/{name}" for name in actions]
    more += [f"/ui/jobs/{JOB}/actions/{name}?snapshot=r1/ck:1" for name in ("pin", "verify")]
    for path in [*paths(), *more]:
        assert client.get(path).status_code == 200, path
        assert client.post(path, json={}).status_code == 405, path
    assert files() == before
