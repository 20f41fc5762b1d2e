"""Who may read the files of a home: its owner, unless told otherwise."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from headgate.base.errors import UsageError
from headgate.home.layout import Home


def make(home: Path) -> set[tuple[bool, int]]:
    """A home with a run; gives the modes of its folders and files."""
    job = Home(home).job("store")
    run = job.new_run(graph={}, graph_fingerprint="f", parallelism=1, params={}, versions={},
                      code={})  # fmt: skip
    job.set_current(run.id)
    run.add_event("started")
    return modes(home)


def modes(home: Path) -> set[tuple[bool, int]]:
    return {(p.is_dir(), stat.S_IMODE(p.stat().st_mode)) for p in home.rglob("*")}


def test_a_new_home_is_its_owners(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert make(tmp_path / "a" / "home") == {(True, 0o700), (False, 0o600)}
    assert stat.S_IMODE((tmp_path / "a" / "home").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) & 0o055, "what is above is not the home's"
    (tmp_path / "b").mkdir(mode=0o755)
    assert make(tmp_path / "b") == {(True, 0o700), (False, 0o600)}


def test_a_home_may_be_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_HOME_MODE", "shared")
    assert make(tmp_path / "home") == {(True, 0o755), (False, 0o644)}
    monkeypatch.delenv("HEADGATE_HOME_MODE")
    assert make(tmp_path / "home") == {(True, 0o755), (False, 0o644)}, "it stays as it was made"
    (tmp_path / "home" / "jobs").chmod(0o700)
    assert {(False, 0o600), (True, 0o700)} < make(tmp_path / "home"), "until it is closed"


def test_an_unknown_mode_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_HOME_MODE", "0640")
    with pytest.raises(UsageError, match="must be private or shared"):
        make(tmp_path / "home")
