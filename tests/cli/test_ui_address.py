"""`headgate ui` shows its address once on a terminal, and on standard output for scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import uvicorn

from headgate.cli.main import invoke


@pytest.mark.parametrize("on_terminal", [True, False])
def test_the_address_is_shown_once_on_a_terminal(
    on_terminal: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path))
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: sockets[0].close())
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: on_terminal)
    assert invoke(["ui", "--port", "0"]) == 0
    out, err = capsys.readouterr()
    assert err.count("is shown at http://127.0.0.1:") == 1
    assert out.startswith("http://127.0.0.1:") != on_terminal
    assert out.count("\n") == (not on_terminal)
