"""`headgate run --detach`, `logs` and Ctrl-C in start-up, with a real job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home

pytestmark = pytest.mark.slow

APP = """
import headgate as hg

@hg.job("small", checkpoints=hg.Checkpoints(every="200 milliseconds"))
def small(job: hg.Job) -> None:
    orders = job.source("orders", hg.topic("log:orders", schema="n BIGINT"))
    orders.where(job.param("where", "n > 0")).sink("copied", hg.topic("log:copied"))
"""

# pyspark leaves variables behind in the process of the tests, which a user's shell does not have
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))
}


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "headgate", *arguments, "--", "--master", "local[1]"]
        if arguments[0] == "run" else [sys.executable, "-m", "headgate", *arguments],
        cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=180)
    return process.returncode, out, err


def test_a_job_in_the_background_is_followed_and_stopped(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    orders = TopicFiles(tmp_path / "orders")
    orders.create(1)
    orders.append([Record(json.dumps({"n": n})) for n in range(-50, 50)])

    # Ctrl-C while Spark starts: there is no batch to wait for.
    process = start(tmp_path, "run", "app.py")
    assert process.stderr is not None
    assert "starting Spark" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "interrupted\n")
    home = Home(tmp_path / ".headgate")
    assert home.job("small").read().lease is None

    # A start that fails says why, with its own exit code.
    code, _, err = run(tmp_path, "run", "app.py", "--detach", "--from", "sp:none")
    assert code == 3
    assert "the start failed: " in err and "has no savepoint 'none'" in err

    code, out, err = run(tmp_path, "run", "app.py", "--detach", "--json", "--set", "where=n > 9")
    assert code == 0, err
    assert "follow it with: headgate logs small -f\n" in err
    started = json.loads(out)
    assert (started["job"], started["run"], started["ended"]) == ("small", "r1", False)
    assert home.job("small").read().lease is not None

    follower = start(tmp_path, "logs", "small", "-f")
    code, _, err = run(tmp_path, "stop", "small", "--no-savepoint")
    assert code == 0, err
    followed, err = follower.communicate(timeout=60)
    assert follower.returncode == 0, err
    assert followed == Path(started["log"]).read_text()
    assert "incubator" not in followed
    assert followed.splitlines()[-1].startswith("job small stopped after ")
    copied = sorted(json.loads(one.value or "")["n"] for one in
                    TopicFiles(tmp_path / "copied").read({0: 0}))  # fmt: skip
    assert copied == list(range(10, 50))
