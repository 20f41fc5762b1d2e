"""A join, dedupe, an aggregate and tops of one job: killed with -9, and from the command line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.base.errors import ExitCode
from headgate.cli.main import invoke
from headgate.connectors.log.files import LogRecord, TopicFiles
from tests.reliability.joins_data import TOPICS, Shop, outcome
from tests.reliability.processes import Driver
from tests.reliability.test_driver_kills import checkpoints, work_a_while

APP = Path(__file__).parent / "joins_job.py"
JOB = "joins"


def found(data: Path) -> dict[str, Any]:
    def read(name: str) -> list[LogRecord]:
        topic = TopicFiles(data / name)
        return list(topic.read()) if topic.exists() else []

    return outcome(read)


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_by_a_kill_at_a_random_moment(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    moments = random.Random(seed)
    data, home = tmp_path / "data", tmp_path / "home"
    shop = Shop(data, 6000, seed)
    driver = Driver(APP, data, home, job=JOB, names=TOPICS)
    assert work_a_while(driver, home, 1, moments.uniform(0, 1), JOB)
    driver.kill()
    assert checkpoints(home, JOB) < 11, "all was done before the kill"
    driver = Driver(APP, data, home, "--bounded", "--drain", job=JOB, names=TOPICS)
    assert driver.wait(240) == 0, driver.text()[-3000:]
    assert found(data) == shop.truth()


@pytest.mark.slow
def test_the_command_line_runs_restores_and_shows_them(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    shop = Shop(data, 600, 5)

    def run(*flags: str, out: Path = data) -> None:
        places = {name: (data if name in ("orders", "payments") else out) for name in TOPICS}
        sets = [w for name, at in places.items() for w in ("--set", f"{name}=log:{at / name}")]
        words = ["run", f"{APP}:{JOB}", "--home", str(home), "--bounded", "--quiet"]
        assert invoke([*words, *sets, *flags]) == ExitCode.DONE

    def said(*words: str) -> Any:
        capsys.readouterr()
        assert invoke([*words, "--home", str(home), "--json"]) == ExitCode.DONE
        return json.loads(capsys.readouterr().out)

    run()
    before = found(data)
    said("savepoint", "create", JOB, "--label", "open")
    user = shop.orders[-1].user
    kept = said("state", "get", JOB, "totals", "--key", f"user={user}")["state"]["row"]
    assert kept["n"] == len([order for order in shop.orders if order.user == user])
    assert invoke(["state", "scan", JOB, "soon", "--home", str(home)]) == ExitCode.DONE
    rows = [json.loads(line)["row"]["rows"] for line in capsys.readouterr().out.splitlines()]
    assert rows and {len(kept) for kept in rows} <= {1, 2}
    states = {step["step"]: step["rows"] for step in said("state", "list", JOB)["steps"]}
    run("--drain")
    assert found(data) == shop.truth()
    gone = said("state", "diff", f"{JOB}@sp:open", "soon")
    assert gone["counts"] == {"added": 0, "removed": states["soon"], "changed": 0}
    again = tmp_path / "again"
    run("--drain", "--from", "sp:open", "--parallelism", "3", out=again)
    for name in ("paid_out", "soon_out"):
        assert before[name] + found(again)[name] == shop.truth()[name]
