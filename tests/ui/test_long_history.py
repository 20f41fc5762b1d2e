"""200,000 checkpoints: every first answer reads a bounded number of files; times are printed."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from headgate.cli.main import invoke
from headgate.home.checkpoint_log import KEEP, SPAN
from headgate.home.files import LocalFiles
from headgate.home.layout import Home
from headgate.runtime.lease import Lease
from headgate.ui.app import create_app
from tests.ui.long_home import FAILURES, JOB, ROWS, long_home
from tests.ui.pages.conftest import looking, serving
from tests.ui.pages.looks import fits_and_is_accessible

pytestmark = pytest.mark.slow
CHECKPOINTS = 200_000
FILES = ("read_text", "open", "size", "exists", "modified")


class Operations:
    """Counts what is read of a home, and how many names listings gave."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.reads = 0
        self.listed = 0
        for name in FILES:
            patch.setattr(LocalFiles, name, self._counting(getattr(LocalFiles, name)))
        names = LocalFiles.names

        def counted(files: LocalFiles, path: str) -> list[str]:
            found = names(files, path)
            self.reads += 1
            self.listed += len(found)
            return found

        patch.setattr(LocalFiles, "names", counted)

    def _counting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self.reads += 1
            return method(*args, **options)

        return counted


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("long")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        began = time.monotonic()
        long_home(folder, CHECKPOINTS)
    print(f"\n{CHECKPOINTS:,} checkpoints written in {time.monotonic() - began:.1f} s")
    with Lease(Home(folder).job(JOB)):
        Home(folder).job(JOB).run("r1").add_event("restarted", attempt=1)
        yield folder
    shutil.rmtree(folder)


def test_first_answers_do_not_read_a_long_history(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = Operations(monkeypatch)
    lines = [f"{'':34}{'first answer':>14}{'reads':>8}{'names':>8}"]
    answers: dict[str, str] = {}

    def first(what: str, ask: Callable[[], str], *, reads: int, listed: int) -> None:
        operations.reads = operations.listed = 0
        began = time.monotonic()
        answers[what] = ask()
        took = time.monotonic() - began
        lines.append(f"{what:34}{took * 1000:11.0f} ms{operations.reads:8}{operations.listed:8}")
        assert operations.reads <= reads, (what, operations.reads)
        assert operations.listed <= listed, (what, operations.listed)

    def cli(*words: str) -> Callable[[], str]:
        def ask() -> str:
            capsys.readouterr()
            assert invoke([*words, "--home", str(home)]) == 0
            return capsys.readouterr().out

        return ask

    def web(path: str) -> Callable[[], str]:
        def ask() -> str:
            with TestClient(create_app(str(home)), base_url="http://127.0.0.1") as client:
                answer = client.get(path)
            assert answer.status_code == 200, answer.text
            return answer.text

        return ask

    # A listing gives the files that are not packed and the names of the packs.
    names = 3 * (SPAN + KEEP + CHECKPOINTS // SPAN + 200)
    first("list", cli("list"), reads=60, listed=names)
    first("show", cli("show", JOB), reads=60, listed=names)
    first("show --steps", cli("show", JOB, "--steps", "--json"), reads=60, listed=names)
    first("checkpoint list", cli("checkpoint", "list", JOB), reads=60, listed=names)
    first("checkpoint list --limit 300", cli("checkpoint", "list", JOB, "--limit", "300", "--json"),
          reads=330, listed=names)  # fmt: skip
    first("the page of jobs", web("/ui"), reads=120, listed=names)
    first("the job's page", web(f"/ui/jobs/{JOB}"), reads=150, listed=2 * names)
    first("/metrics", web("/metrics"), reads=350, listed=2 * names)
    checkpoints = f"/ui/jobs/{JOB}/checkpoints/history"
    most = SPAN + KEEP + 350
    first("the checkpoints' page", web(checkpoints), reads=most, listed=6 * names)
    first("a page in the middle", web(f"{checkpoints}?before=100100"), reads=most, listed=6 * names)
    first("the page of runs", web(f"/ui/jobs/{JOB}/runs"), reads=350, listed=6 * names)
    with capsys.disabled():
        print("\n" + "\n".join(lines))

    # and they are right
    assert f"ck:{CHECKPOINTS - 1}" in answers["list"] and "RUNNING" in answers["show"]
    steps = {step["step"]: step for step in json.loads(answers["show --steps"])["steps"]}
    assert steps["orders"]["records_out"] == steps["out"]["records_out"] == ROWS * CHECKPOINTS
    listed = answers["checkpoint list"].splitlines()[1:]
    assert [line.split()[0] for line in listed] == [
        f"ck:{id}" for id in range(CHECKPOINTS - 1, CHECKPOINTS - 21, -1)
    ]
    assert f"50 of {CHECKPOINTS + FAILURES:,} checkpoints" in answers["the checkpoints' page"]
    middle = answers["a page in the middle"]
    assert "ck:100099" in middle and "ck:100050" in middle and "ck:100049<" not in middle
    samples = {
        (sample.name, sample.labels.get("status") or sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(answers["/metrics"])
        for sample in family.samples
        if sample.labels.get("job") == JOB
    }
    assert samples["headgate_checkpoints_total", "completed"] == CHECKPOINTS
    assert samples["headgate_checkpoints_total", "failed"] == FAILURES
    assert samples["headgate_checkpoint_duration_seconds_count", None] == CHECKPOINTS
    assert samples["headgate_checkpoint_duration_seconds_bucket", "0.25"] == CHECKPOINTS
    assert samples["headgate_job_restarts_total", None] == FAILURES


def test_pages_of_a_long_history_fit_and_are_accessible(home: Path, browser: Browser) -> None:
    checkpoints = f"/ui/jobs/{JOB}/checkpoints"
    with serving(home) as address, looking(browser, address) as eyes:
        for path in (
            "/ui/jobs",
            f"/ui/jobs/{JOB}",
            checkpoints,
            f"{checkpoints}/history",
            f"{checkpoints}/history?before=100100",
            f"{checkpoints}/summary",
            f"/ui/jobs/{JOB}/exceptions",
        ):
            eyes.open(path)
            fits_and_is_accessible(eyes, path)
