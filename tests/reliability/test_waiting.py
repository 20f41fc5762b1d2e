"""A job on a cluster that has no room for it says that it waits for executors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.cli.main import invoke
from headgate.home.layout import Home
from headgate.runtime.status import job_status
from tests.reliability.processes import Cluster
from tests.ui.homes import APP, Data, processed, until


@pytest.mark.slow
def test_a_job_without_executors_says_so_until_it_has_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, home, log = Data(tmp_path / "data"), tmp_path / "home", tmp_path / "driver.log"
    data.send(20)
    sets = [word for pair in data.params.items() for word in ("--set", "=".join(pair))]
    job = Home(home).job("shop")
    cluster = Cluster(tmp_path, workers=0)
    with log.open("wb") as out:
        driver = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "run", f"{APP}:shop", "--home", str(home),
             "--parallelism", "1", *sets, "--", *cluster.flags(fail_every=0)],
            stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    try:
        said = f"waiting for executors: {cluster.url} has given the job none since "
        until(lambda: said in log.read_text() or driver.poll() is not None, log.read_text)
        until(lambda: job_status(job).waiting, log.read_text)
        assert invoke(["show", "shop", "--home", str(home), "--json"]) == 0
        (told,) = json.loads(capsys.readouterr().out)["waiting"]
        assert told["for"] == "executors" and cluster.url in told["why"]
        cluster.add_worker()
        until(lambda: processed(home, "shop") == 20 or driver.poll() is not None, log.read_text)
        assert "no longer waiting for executors, after" in log.read_text(), log.read_text()
        assert job_status(job).waiting == ()
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(120) == 0, log.read_text()
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
        cluster.stop()
