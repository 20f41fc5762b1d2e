"""Secrets of runs that end well, resume, are restored and fail: in no file, on no terminal."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import GraphError, JobFailedError, UsageError
from headgate.cli.main import invoke
from headgate.home.layout import Home
from tests.secrets.app import (
    ADDRESS,
    PASSWORD,
    ROTATED,
    SECRETS,
    STORE,
    TOKEN,
    leaks,
    produce,
    write_app,
    written,
)


def run(folder: Path, *more: str, login: str = PASSWORD) -> int:
    return invoke(["run", str(folder / "app.py"), "--home", str(folder / "home"), "--bounded",
                   "--set", f"db_login={login}", "--set", f"api_token={TOKEN}",
                   "--set", f"store={STORE}", *more])  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Path:
    write_app(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_secret_is_in_no_file_and_on_no_terminal(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home = folder / "home"
    produce(folder, 1, 2)
    assert run(folder) == 0
    produce(folder, 3)
    assert run(folder, login=ROTATED) == 0, "a rotated password is no other graph"
    job = Home(home).job("keep")
    assert [r.id for r in job.runs()] == ["r1"]
    assert run(folder, "--from", "ck:0") == 0, "restored"
    produce(folder, 13)
    assert run(folder) == 1
    assert run(folder, "--debug", "--json", login=ROTATED) == 1
    capture = "savepoint create keep latest --label end"
    for command in ("show keep", "show keep --json", "list --json", "graph keep", capture,
                    "graph keep --format json", "checkpoint show keep latest"):  # fmt: skip
        assert invoke([*command.split(), "--home", str(home)]) == 0, command
    told = "".join(capfd.readouterr())
    assert [s for s in SECRETS if s in told] == []
    assert "cannot log in to postgresql://******@db:5432/shop as ******, ?login=******" in told
    assert leaks(home) == []
    assert [r.id for r in job.runs()] == ["r1", "r2"]
    assert written(folder) == ["1", "2", "3", "3"]
    params = {"db_login": "******", "api_token": "******",
              "store": "postgresql://******@db:5432/shop"}  # fmt: skip
    assert [dict(r.read().params) for r in job.runs()] == [params, params]

    # what Spark wrote is behind a folder that only its owner opens
    assert _mode(home) == _mode(home / "jobs") == 0o700
    own = [p for p in home.rglob("*") if "spark" not in p.parts and "journal" not in p.parts]
    own = [p for p in own if "savepoints" not in p.parts and p.name != "driver.lock"]
    modes = {(p.is_dir(), oct(_mode(p))) for p in own if p.name not in ("spark", "journal")}
    assert modes == {(True, "0o700"), (False, "0o600")}


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_references_are_resolved_and_written_down_instead_of_values(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "login").write_text(PASSWORD + "\n")
    monkeypatch.setenv("KEEP_TOKEN", TOKEN)
    produce(folder, 1)
    command = ["run", str(folder / "app.py"), "--home", str(folder / "home"), "--bounded",
               "--set", f"db_login=@{folder / 'login'}", "--set", "api_token=env:KEEP_TOKEN",
               "--set", "store=literal:@store"]  # fmt: skip
    assert invoke(command) == 0
    record = Home(folder / "home").job("keep").run("r1").read()
    given = {"db_login": f"@{folder / 'login'}", "api_token": "env:KEEP_TOKEN", "store": "@store"}
    assert dict(record.params) == given
    assert invoke(["show", "keep", "--home", str(folder / "home")]) == 0
    assert "api_token=env:KEEP_TOKEN" in capfd.readouterr().out
    produce(folder, 13)
    assert invoke(command) == 1
    assert "cannot log in to @store as ******, ?login=****** or with ******" in "".join(
        capfd.readouterr()
    )
    assert leaks(folder / "home") == []


def test_a_program_of_its_own_sees_no_secret_either(folder: Path, spark: SparkSession) -> None:
    produce(folder, 13)
    names: dict[str, hg.JobDef] = {}
    exec((folder / "app.py").read_text(), names)
    params = {"db_login": ROTATED, "api_token": TOKEN, "store": STORE}
    with pytest.raises(JobFailedError) as caught:
        hg.start(names["keep"], spark=spark, home=str(folder / "home"), params=params).wait()
    seen: BaseException | None = caught.value
    while seen is not None:
        told = f"{seen} {seen!r} {vars(seen)}"
        assert [s for s in SECRETS if s in told] == []
        seen = seen.__cause__ or seen.__context__
    assert leaks(folder / "home") == []


def test_a_secret_that_is_not_set_is_asked_for(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (
        invoke(["check", str(folder / "app.py"), "--set", "store=x", "--set", "api_token=x"]) == 2
    )
    told = capfd.readouterr().err
    assert (
        "the secret 'db_login' is not set: start the job with --set db_login=env:VARIABLE" in told
    )


def test_the_password_of_an_address_is_not_in_its_error(spark: SparkSession) -> None:
    @hg.job("wrong")
    def wrong(job: hg.Job) -> None:
        topic = hg.topic(f"kafka://app:{ADDRESS}@broker:9092/orders", schema="n BIGINT")
        job.source("orders", topic).sink("out", hg.topic("log:out"))

    with pytest.raises((GraphError, UsageError)) as caught:
        wrong.build(spark=spark)
    assert "******@broker:9092" in str(caught.value) and ADDRESS not in str(caught.value)


def test_a_secret_is_a_text_in_tests_of_a_job(spark: SparkSession) -> None:
    @hg.job("plain")
    def plain(job: hg.Job) -> None:
        value = job.secret("key")
        rows = job.source("orders", hg.topic("log:orders", schema="n BIGINT"))
        rows.select(f"'{value}' AS value").sink("out", hg.topic("log:out"))

    with hg.testing.JobDriver(plain, params={"key": ROTATED}) as t:
        t.send("orders", {"n": 1})
        t.run()
        assert t.rows("out") == [{"value": ROTATED}]
    with hg.testing.JobDriver(plain) as t:
        t.send("orders", {"n": 1})
        t.run()
        assert t.rows("out") == [{"value": "test"}]
