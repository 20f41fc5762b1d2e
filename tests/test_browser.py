"""Where there is no browser, tests of pages say so: they are skipped, and in CI they fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import browser

ROOT = Path(__file__).parents[1]


def test_without_a_browser_tests_are_skipped_but_never_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="There is no Chromium"):
        browser.without_browser()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="or name one: HEADGATE_TEST_CHROMIUM"):
        browser.without_browser()


def test_the_set_up_fails_with_the_remedy_where_the_named_browser_is_none(tmp_path: Path) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "tests.browser"], cwd=ROOT, timeout=120, check=False, text=True,
        capture_output=True, env=os.environ | {browser.VARIABLE: str(broken)},
    )  # fmt: skip
    assert done.returncode == 1
    assert f"{broken} does not start" in done.stdout
    assert "playwright install --with-deps chromium" in done.stderr
