"""`headgate checkpoint`, `savepoint`, `state` and `plan` on the home of a real job."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headgate as hg
from headgate.base.errors import ExitCode
from headgate.cli.main import invoke
from headgate.testing import Deleted, JobDriver

Make = Callable[..., JobDriver]


@hg.job("shop", checkpoints=hg.Checkpoints(retain=3))
def shop(job: hg.Job) -> None:
    orders = job.source("orders", hg.topic("log:orders", schema="id BIGINT, user_id BIGINT"))
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    found = orders.lookup("users_lookup", users, on="user_id", take=["name"])
    found.sink("out", hg.topic("log:out"))


class Shell:
    """Runs commands against one home, and reads what they print."""

    def __init__(self, home: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys
        self.said = ""

    def __call__(self, *words: str, code: ExitCode = ExitCode.DONE) -> str:
        self._capsys.readouterr()
        found = invoke([*words, "--home", self.home])
        printed = self._capsys.readouterr()
        self.said = printed.err
        assert found == code, (words, printed)
        return printed.out

    def json(self, *words: str, code: ExitCode = ExitCode.DONE) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self(*words, "--json", code=code))
        assert data["version"] == 1
        return data


@pytest.fixture
def driver(job_driver: Make) -> JobDriver:
    t = job_driver(shop)
    for number in range(5):
        t.send("users", *({"id": k, "name": f"{k}.{number}"} for k in range(number, 40, 9)))
        t.send("orders", {"id": number, "user_id": number}).run()
    return t


@pytest.fixture
def shell(driver: JobDriver, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(driver.home, capsys)


def test_checkpoints_are_listed_kept_pinned_and_deleted(driver: JobDriver, shell: Shell) -> None:
    listed = shell.json("checkpoint", "list", "shop")["checkpoints"]
    assert [record["id"] for record in listed] == [4, 3, 2, 1, 0]
    kept = [record["id"] for record in listed if record["restorable"]]
    assert kept == [4, 3, 2], "retain=3"
    text = shell("checkpoint", "list", "sho", "--limit", "2")
    assert "ck:4" in text and "ck:2" not in text

    shell("checkpoint", "pin", "shop", "ck:2")
    for number in range(5, 8):
        driver.send("orders", {"id": number, "user_id": number}).run()
    listed = shell.json("checkpoint", "list", "shop")["checkpoints"]
    assert [r["id"] for r in listed if r["restorable"]] == [7, 6, 5, 2]
    assert [r["id"] for r in listed if r["pinned"]] == [2]
    shell("checkpoint", "verify", "shop", "ck:2")
    assert "is whole" in shell.said
    shown = shell.json("checkpoint", "show", "shop", "ck:2")
    assert shown["record"]["sources"]["orders"]["end"] == {"0": 3, "1": 0}
    driver.restore("ck:2").run()
    assert driver.checkpoint().startswith("r2/")

    shell("checkpoint", "delete", "shop", "r1/ck:2")
    shell("checkpoint", "delete", "shop", "r1/ck:6")
    assert [r["id"] for r in shell.json("checkpoint", "list", "shop", "--run", "r1")["checkpoints"]
            if r["restorable"]] == [7, 5]  # fmt: skip
    for id in ("r1/ck:5", "r1/ck:7"):
        shell("checkpoint", "verify", "shop", id)
    shell("checkpoint", "delete", "shop", "latest", code=ExitCode.REFUSED)
    assert "goes on" in shell.said
    shell("checkpoint", "show", "shop", "ck:99", code=ExitCode.NOT_FOUND)
    shell("checkpoint", "create", "shop", code=ExitCode.REFUSED)


def test_a_savepoint_is_made_shown_copied_verified_and_deleted(
    driver: JobDriver, shell: Shell, tmp_path: Path
) -> None:
    made = shell.json("savepoint", "create", "shop", "--label", "before_v2")
    assert (made["label"], made["checkpoint"]) == ("before_v2", 4)
    shell("savepoint", "create", "shop", "--label", "before_v2", code=ExitCode.REFUSED)
    assert "already has a savepoint 'before_v2'" in shell.said
    shell("savepoint", "create", "shop", "--label", "../x", code=ExitCode.USAGE)
    older = shell.json("savepoint", "create", "shop", "ck:3")
    assert older["checkpoint"] == 3
    names = [s["label"] for s in shell.json("savepoint", "list", "shop")["savepoints"]]
    assert names == ["before_v2", older["label"]]
    assert "24 rows" in shell("savepoint", "show", "shop", "sp:before_v2")

    copy = tmp_path / "copy"
    shell("savepoint", "copy", "shop", "sp:before_v2", "--to", str(copy))
    shell("savepoint", "copy", "shop", "sp:before_v2", "--to", str(copy), code=ExitCode.REFUSED)
    shell("savepoint", "copy", "shop", "sp:before_v2", "--as-job", "other")
    assert (Path(driver.home) / "jobs" / "other" / "savepoints" / "before_v2").is_dir()
    shell("savepoint", "verify", "shop", str(copy))
    damaged = next(iter(copy.rglob("*.changelog")))
    whole = damaged.read_bytes()
    damaged.unlink()
    damaged.write_bytes(whole[:-3] + b"???")
    assert damaged.name in shell("savepoint", "verify", "shop", str(copy), code=ExitCode.FAILED)
    shell("savepoint", "verify", "shop", "before_v2")

    shell("savepoint", "delete", "shop", "sp:before_v2", "--yes")
    shell("savepoint", "show", "shop", "sp:before_v2", code=ExitCode.NOT_FOUND)
    assert older["label"] in shell.said, "it says which there are"


def test_the_state_of_any_snapshot_is_read_by_key(
    driver: JobDriver, shell: Shell, tmp_path: Path
) -> None:
    listed = shell.json("state", "list", "shop")["steps"]
    assert [(s["step"], s["key"], s["rows"]) for s in listed] == [("users_lookup", ["id"], 24)]
    got = shell.json("state", "get", "shop", "users_lookup", "--key", "id=13")
    assert (got["key"], got["state"]) == ({"id": 13}, {"row": {"name": "13.4"}})
    twice = ("--key", "id=13", "--key", "id=12")
    shell("state", "get", "shop", "users_lookup", *twice, code=ExitCode.USAGE)
    older = shell.json("state", "get", "shop@ck:3", "users_lookup", "--key", "id=12")
    assert older["state"] == {"row": {"name": "12.3"}}
    shell("state", "get", "shop@ck:3", "users_lookup", "--key", "id=13", code=ExitCode.NOT_FOUND)
    shell("state", "get", "shop", "users_lookup", "--key", "nr=13", code=ExitCode.USAGE)
    shell("state", "get", "shop", "nothing", "--key", "id=13", code=ExitCode.NOT_FOUND)
    for words in (["--where", "row.name = = 1"], ["--where", "row.nome = 'x'"]):
        shell("state", "scan", "shop", "users_lookup", *words, code=ExitCode.USAGE)
        assert (
            "--where must be a condition" in shell.said and "row:struct<name:string>" in shell.said
        )
    shell("state", "get", "shop", "users_lookup", "--key", "id=abc", code=ExitCode.USAGE)
    assert "the key id must be BIGINT, got 'abc'" in shell.said
    found = shell("state", "scan", "shop", "users_lookup", "--where", "key.id > 35")
    assert sorted(json.loads(line)["key"]["id"] for line in found.splitlines()) == [36, 37, 38, 39]

    driver.send("users", {"id": 0, "name": "new"}, Deleted(9), {"id": 99, "name": "more"}).run()
    diff = shell.json("state", "diff", "shop@ck:4", "users_lookup")
    assert diff["counts"] == {"added": 1, "removed": 1, "changed": 1}
    assert {(r["change"], r["key"]["id"]) for r in diff["rows"]} == {
        ("added", 99), ("removed", 9), ("changed", 0),
    }  # fmt: skip
    file = tmp_path / "users.jsonl"
    shell("state", "export", "shop", "users_lookup", "--to", str(file))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["key"]["id"]: row["row"]["name"] for row in rows}[0] == "new"
    assert len(rows) == 24


def test_a_plan_says_what_a_start_would_do(tmp_path: Path, capsys: pytest.CaptureFixture[str],
    spark: Any,
) -> None:  # fmt: skip
    app = tmp_path / "app.py"
    code = f"""
import headgate as hg

DATA = "log:{tmp_path}"

@hg.job("shop")
def shop(job: hg.Job) -> None:
    orders = job.source("orders", hg.topic(DATA + "/orders", schema="id BIGINT, user_id BIGINT"))
    users = job.table("users", hg.topic(DATA + "/users", schema="id BIGINT, name STRING"), key="id")
    found = orders.lookup("LOOKUP", users, on="user_id", take=["name"])
    found.sink("out", hg.topic(DATA + "/out"))
"""
    app.write_text(code.replace("LOOKUP", "users_lookup"))
    shell = Shell(str(tmp_path / "home"), capsys)
    for topic in ("orders", "users"):
        shell("topic", "create", f"log:{tmp_path}/{topic}")
    (tmp_path / "users.jsonl").write_text('{"id": 1, "name": "Ann"}\n')
    shell("topic", "produce", f"log:{tmp_path}/users", "--file", str(tmp_path / "users.jsonl"))
    shell("run", str(app), "--bounded")
    shell("plan", str(app))
    assert "nothing changes" in shell.said
    app.write_text(code.replace("LOOKUP", "people_lookup"))
    plan = shell.json("plan", str(app), "--against", "latest", code=ExitCode.REFUSED)
    marks = [(s["mark"], s["name"], s["rows"]) for s in plan["steps"]]
    assert marks == [("+", "people_lookup", None), ("-", "users_lookup", 1)]
    assert plan["sources"][0]["text"].startswith("resumes at partition 0 offset")
    shell("run", str(app), "--bounded", code=ExitCode.REFUSED)
    assert "- users_lookup" in shell.said and "--allow-dropped-state" in shell.said
    shell("run", str(app), "--bounded", "--allow-dropped-state")
