"""headgate.toml: what holds and why, by environment; and `headgate init`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.base.errors import NotFoundError, UsageError
from headgate.base.project import load_project
from headgate.cli.main import invoke
from headgate.cli.options import params_of, parse_spark_flags
from headgate.connectors.log.files import TopicFiles

TOML = """
home = "state"
py_files = ["shop", "lib/prices.py"]

[spark]
master = "local[2]"
executor.memory = "2g"
"ui.enabled" = true

[jobs.store.params]
orders = "log:orders"
users = "log:users"

[env.production]
home = "s3://bucket/home"
[env.production.spark]
executor.memory = "8g"
[env.production.jobs.store.params]
orders = "kafka://b:9092/orders"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HEADGATE_HOME", "HEADGATE_MASTER", "HEADGATE_ENV", "HEADGATE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "headgate.toml").write_text(TOML)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def test_an_environment_changes_what_it_names(project: Path) -> None:
    usual, production = load_project(), load_project("production")
    assert usual.home is not None and usual.home.value == str(project / "state")
    assert production.home is not None and production.home.value == "s3://bucket/home"
    assert usual.spark_conf() == {"spark.executor.memory": "2g", "spark.ui.enabled": "true"}
    assert production.conf["spark.executor.memory"].value == "8g"
    assert production.conf["spark.executor.memory"].origin == "headgate.toml [env.production]"
    assert production.conf["spark.ui.enabled"].origin == "headgate.toml"
    assert params_of("store", production, ["users=log:x"]) == {
        "orders": "kafka://b:9092/orders", "users": "log:x",
    }  # fmt: skip
    assert params_of("other", production, None) == {}
    assert [one.value for one in usual.py_files or ()] == [
        str(project / "shop"), str(project / "lib/prices.py"),
    ]  # fmt: skip


def test_flags_come_first_then_the_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = parse_spark_flags(["--conf", "spark.executor.memory=1g"])
    assert flags.beside(load_project()).master == "local[2]"
    assert flags.beside(load_project()).conf["spark.executor.memory"] == "1g"
    monkeypatch.setenv("HEADGATE_MASTER", "yarn")
    assert flags.beside(load_project()).master == "yarn"
    assert parse_spark_flags(["--master", "local[7]"]).beside(load_project()).master == "local[7]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('hom = "x"', "has a setting 'hom' that is not known"),
        ("home = 3", "home in headgate.toml must be a str"),
        ("[env.a]\nhome = 3", r"home in \[env.a\] of headgate.toml must be a str"),
        ("[jobs.store]\norders = 1", "jobs.store in headgate.toml has a setting 'orders'"),
        ("home = ", "cannot be read"),
    ],
)
def test_what_is_wrong_is_said(project: Path, text: str, said: str) -> None:
    (project / "headgate.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        load_project()


def test_an_environment_that_is_not_there_is_refused(project: Path) -> None:
    with pytest.raises(NotFoundError, match="no environment 'prod': it has: production"):
        load_project("prod")


def test_config_show_says_who_has_said_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADGATE_HOME", str(project / "mine"))
    assert invoke(["config", "show", "--origin", "--json"]) == 0
    found = {s["name"]: s for s in json.loads(capsys.readouterr().out)["settings"]}
    assert found["home"] == {
        "name": "home", "value": str(project / "mine"), "origin": "HEADGATE_HOME",
    }  # fmt: skip
    assert found["spark.master"]["origin"] == "headgate.toml"
    assert found["jobs.store.params.orders"]["value"] == "log:orders"
    assert invoke(["config", "show"]) == 0
    assert "ORIGIN" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_new_project_runs(tmp_path: Path) -> None:
    def headgate(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HEADGATE_")}
        return subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", *words], cwd=cwd, env=kept,
            capture_output=True, text=True, timeout=180,
        )  # fmt: skip

    made = headgate("init", "shop", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    again = headgate("init", "shop", cwd=tmp_path)
    assert again.returncode == 5 and "is not written over" in again.stderr
    ran = headgate("run", "job.py", "--bounded", "--log-format", "json", cwd=tmp_path / "shop")
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("{")]
    assert {line["job"] for line in lines} == {"totals"}
    assert [line["batch"] for line in lines if "steps" in line] == [0]
    rows = [json.loads(r.value) for r in TopicFiles(tmp_path / "shop/data/totals").read()]
    newest: dict[str, int] = {}
    for row in rows:
        newest[row["user"]] = max(row["total"], newest.get(row["user"], 0))
    assert newest == {"ann": 7, "bob": 7, "eve": 1} and len(rows) == 5
