"""`headgate submit` and plain spark-submit: master, exit code and SIGTERM are the cluster's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import zipfile
from pathlib import Path

import pytest

from headgate.base.errors import UsageError
from headgate.brokers.process import free_port
from headgate.cli.common import Ui
from headgate.cli.submit import submit_command
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.jvm.spark_jars import find_spark_jars
from headgate.runtime.status import job_status
from tests.reliability.processes import Cluster

APP = """
import headgate as hg

@hg.job("copied", checkpoints=hg.Checkpoints(every="200 ms"))
def copied(job: hg.Job) -> None:
    rows = job.source("rows", hg.topic(job.param("rows"), schema="n BIGINT"))
    rows.sink("out", hg.topic(job.param("out")))

if __name__ == "__main__":
    hg.main(copied)
"""


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return bool(json.load(answer)["ok"])
    except OSError:  # not there yet, or 503
        return False


@pytest.mark.slow
def test_a_submitted_job_stops_with_a_savepoint(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    TopicFiles(tmp_path / "rows").create(1)
    TopicFiles(tmp_path / "rows").append([Record(json.dumps({"n": n})) for n in range(100)])
    home = Home(str(tmp_path / "home")).job("copied")
    sets = ["--set", f"rows=log:{tmp_path}/rows", "--set", f"out=log:{tmp_path}/out"]
    port = free_port()
    with open(tmp_path / "said", "w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "submit", "app.py", "--home", "home", *sets,
             "--grace", "2 minutes", "--health-port", str(port), "--",
             *cluster.flags(fail_every=0)],
            cwd=tmp_path, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
    try:
        until = time.monotonic() + 180
        while not (_ready(port) and (run := home.current()) and run.checkpoint_ids()):
            assert process.poll() is None, (tmp_path / "said").read_text()[-3000:]
            assert time.monotonic() < until, (tmp_path / "said").read_text()[-3000:]
            time.sleep(0.2)
        # to the one process that was started: it is Spark's JVM by now, and Python its child
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, (tmp_path / "said").read_text()[-3000:]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    status = job_status(home)
    assert status.state == "STOPPED" and status.started is not None
    assert status.started.details["master"] == cluster.url
    assert len(list((tmp_path / "home").rglob("savepoints/*"))) >= 1
    found = sorted(json.loads(r.value)["n"] for r in TopicFiles(tmp_path / "out").read())
    assert found == list(range(100))

    # and a file that is a program of its own, whose failure is that of spark-submit
    submit = find_spark_jars().folder.parent / "bin" / "spark-submit"
    failed = subprocess.run(
        [str(submit), "--master", "local[3]", "app.py", "--home", "home", *sets, "--set", "x=1"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    told = failed.stdout + failed.stderr
    assert failed.returncode == 2 and "no parameter 'x'" in told, told[-3000:]


def test_a_driver_in_a_standalone_cluster_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    said = subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", "submit", "app.py", "--", "--master",
         "spark://h:7077", "--deploy-mode", "cluster"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert said.returncode == 2
    assert "only YARN and Kubernetes run a driver in Python" in said.stderr


def test_a_driver_in_the_cluster_gets_the_jobs_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADGATE_MASTER", raising=False)
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "prices.py").write_text("")
    (tmp_path / "headgate.toml").write_text('[spark]\nexecutor.memory = "2g"\nmaster = "yarn"\n')
    command, environment = submit_command(
        Ui(home_url="hdfs:///home"), "app.py:copied",
        ["--deploy-mode", "cluster", "--files", "own.txt", "--py-files=more.zip"],
        {"params": ["rows=log:x", "password=env:SECRET"], "bounded": True, "parallelism": 4,
         "health_limit": "5 minutes", "grace": "25 seconds", "name": None},
    )  # fmt: skip
    entry = next(at for at, word in enumerate(command) if word.endswith("submitted.py"))
    assert command[entry + 1 :] == [
        "run", "app.py:copied", "--home", "hdfs:///home", "--set", "rows=log:x",
        "--set", "password=env:SECRET", "--bounded", "--parallelism", "4", "--grace", "25 seconds",
    ]  # fmt: skip
    flags = command[1:entry]
    assert flags[flags.index("--master") + 1] == "yarn"
    assert "spark.executor.memory=2g" in flags
    assert "spark.yarn.appMasterEnv.HEADGATE_JAR_CACHE=headgate-jars" in flags
    files = flags[flags.index("--files") + 1].split(",")
    assert files == ["own.txt", str(tmp_path / "app.py"), str(tmp_path / "headgate.toml")]
    (archive,) = [w for w in flags if w.startswith("--py-files=")]
    first, brought = archive.removeprefix("--py-files=").split(",")
    assert first == "more.zip"
    assert zipfile.ZipFile(brought).namelist() == ["app.py", "prices.py"]
    assert "PYSPARK_DRIVER_PYTHON" not in environment, "that path need not be there"
    with pytest.raises(UsageError, match="a secret's value does not travel"):
        submit_command(Ui(home_url="hdfs:///home"), "app.py", ["--deploy-mode", "cluster"],
                       {"params": ["password=hunter2"]})  # fmt: skip
