"""A server over the home that real jobs have made, and pages of it in a real browser."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, expect

from headgate.ui.access import Access
from headgate.ui.app import create_app
from tests.ui.homes import Homes

# How long a page may take says nothing here: machines of tests are busy.
_PATIENCE_MS = 120_000
expect.set_options(timeout=_PATIENCE_MS)


@contextmanager
def serving(home: Path | str, access: Access | None = None) -> Iterator[str]:
    """The application on a port of its own; gives its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(create_app(str(home), access=access), log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)


@dataclass
class Eyes:
    """A tab of the browser that keeps all that went wrong in it."""

    page: Page
    address: str
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(_PATIENCE_MS)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("request", self._requested)
        self.page.on("dialog", lambda dialog: (self.wrong.append("a dialog"), dialog.dismiss()))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"console: {message.text} at {message.location}")

    def _failed(self, request: Request) -> None:
        # A page that is left while it polls gives up its request.
        if request.failure != "net::ERR_ABORTED":
            self.wrong.append(f"request: {request.url} {request.failure}")

    def _requested(self, request: Request) -> None:
        if not request.url.startswith(self.address):
            self.wrong.append(f"requested elsewhere: {request.url}")

    def open(self, path: str, status: int = 200) -> Response:
        """Go to a page that answers with this status."""
        response = self.page.goto(self.address + path)
        assert response is not None
        assert response.status == status, f"{path}: {response.status}"
        return response

    def table(self, caption: str) -> list[dict[str, str]]:
        """The rows of a table whose caption begins like this, by the texts of its head."""
        found = self.page.evaluate(_TABLE, caption)
        assert found is not None, f"no table {caption!r}"
        return [dict(zip(found["head"], row, strict=True)) for row in found["rows"]]

    def facts(self, title: str) -> dict[str, str]:
        """The facts of the card with this title."""
        found: dict[str, str] = self.page.evaluate(_FACTS, title)
        assert found, f"no facts in {title!r}"
        return found


_TABLE = """caption => {
  const text = e => e.innerText.trim().replace(/\\s+/g, " ");
  const all = [...document.querySelectorAll("table")];
  const table = all.find(t => t.caption && text(t.caption).startsWith(caption));
  if (!table) return null;
  return {
    head: [...table.tHead.rows[0].cells].map(text),
    rows: [...table.tBodies[0].rows].map(r => [...r.cells].map(text)),
  };
}"""
_FACTS = """title => {
  const text = e => e.innerText.trim().replace(/\\s+/g, " ");
  const card = [...document.querySelectorAll("section")]
    .find(s => s.querySelector("h2") && text(s.querySelector("h2")) === title);
  const facts = {};
  for (const dt of card ? card.querySelectorAll("dt") : []) {
    const dd = dt.parentElement.querySelector("dd") && dt.nextElementSibling;
    facts[text(dt)] = text(dd);
  }
  return facts;
}"""


@pytest.fixture(scope="package")
def address(made: Homes) -> Iterator[str]:
    """Where the pages of the home are."""
    with serving(made.home) as found:
        yield found


@contextmanager
def looking(browser: Browser, address: str, width: int = 1280, **options: object) -> Iterator[Eyes]:
    """A tab; the block ends well only if nothing went wrong in it."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, timezone_id="Asia/Tokyo", **options
    )
    try:
        eyes = Eyes(context.new_page(), address)
        yield eyes
        assert eyes.wrong == []
    finally:
        context.close()


@pytest.fixture
def eyes(browser: Browser, address: str) -> Iterator[Eyes]:
    """A tab of usual width."""
    with looking(browser, address) as found:
        yield found
