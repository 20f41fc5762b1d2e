"""The browser of the tests: where a Chromium is, and how one comes onto a machine without.

`make test` runs `python -m tests.browser`, which gets one and says how. Tests that find none are
skipped with a line that says so, except in CI, where they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, Error, Playwright, sync_playwright

VARIABLE = "HEADGATE_TEST_CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
REMEDY = (
    "Run `python -m playwright install --with-deps chromium`, or install Chromium with your "
    f"system's packages, or name one: {VARIABLE}=/path/to/chromium"
)


def _candidates(playwright: Playwright) -> Iterator[str]:
    named = os.environ.get(VARIABLE)
    if named:
        yield named
        return
    yield playwright.chromium.executable_path
    yield from filter(None, map(shutil.which, _NAMES))
    yield from _PLACES


def _launch(playwright: Playwright, path: str) -> Browser:
    # Chromium refuses its sandbox to root, and containers often have no room in /dev/shm.
    options = ["--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")
    return playwright.chromium.launch(executable_path=path, args=options)


@contextmanager
def open_browser() -> Iterator[Browser | None]:
    """The first Chromium that starts and shows a page, without a window; None if none does."""
    with sync_playwright() as playwright:
        for path in _candidates(playwright):
            if not Path(path).exists():
                continue
            try:
                browser = _launch(playwright, path)
                page = browser.new_page()
                page.set_content("<title>ready</title>")
                assert page.title() == "ready"
                page.close()
            except Error as error:
                print(f"browser: {path} does not start: {error.message.splitlines()[0]}")
                continue
            try:
                yield browser
            finally:
                browser.close()
            return
        yield None


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium without a window, the same for all tests of a worker."""
    with open_browser() as found:
        if found is None:
            without_browser()
        yield found


def without_browser() -> NoReturn:
    """Skip the test, or fail it in CI, with the way to a browser."""
    line = f"There is no Chromium for the browser tests. {REMEDY}"
    if os.environ.get("CI"):
        pytest.fail(line, pytrace=False)
    pytest.skip(line)


@cache
def _version() -> str | None:
    with open_browser() as found:
        return None if found is None else found.version


def _try(what: str, *command: str, seconds: int = 900) -> bool:
    print(f"browser: {what}", flush=True)
    try:
        done = subprocess.run(
            command, timeout=seconds, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"browser: that did not work: {error}")
        return False
    if done.returncode:
        last = [line for line in done.stdout.splitlines() if line.strip()][-1:]
        print(f"browser: that did not work: {' '.join(last) or done.returncode}")
    _version.cache_clear()
    return done.returncode == 0


def get_browser() -> str | None:
    """Its version, after getting one from the network if there is none; None if that fails.

    Where one is named by the variable, no other is looked for.
    """
    if _version() or os.environ.get(VARIABLE):
        return _version()
    root = os.geteuid() == 0
    deps = ("--with-deps",) if root and sys.platform == "linux" else ()
    download = (sys.executable, "-m", "playwright", "install", *deps, "chromium")
    if _try("downloading Chromium with Playwright (about 170 MB, once)", *download) and _version():
        return _version()
    if root and shutil.which("apt-get"):
        _try("asking the system's package manager for its lists", "apt-get", "update", "-q")
        install = ("apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium")
        _try("installing chromium with the system's package manager", *install)
    return _version()


def main() -> int:
    """What `make test` runs before the tests."""
    version = get_browser()
    if version is None:
        print(f"browser: there is none for the tests of the pages. {REMEDY}", file=sys.stderr)
        return 1
    print(f"browser: the tests of the pages use Chromium {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
