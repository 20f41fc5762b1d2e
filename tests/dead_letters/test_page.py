"""The commands of docs/dead-letters.md do what the page says."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.cli.main import invoke

PAGE = (Path(__file__).parents[2] / "docs" / "dead-letters.md").read_text()


def test_the_commands_of_the_page_enrich_both_orders(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```\w*\n(.*?)^```", PAGE, re.S | re.M)
    program, before, after = blocks

    def play(commands: str) -> str:
        capfd.readouterr()
        for line in commands.splitlines():
            if line.startswith("headgate "):
                assert invoke(shlex.split(line)[1:]) == 0, line
            else:
                subprocess.run(line, shell=True, check=True)
        return capfd.readouterr().out

    app = Path("store.py")
    app.write_text(program.replace(', dead_letters="log:data/dlq"', ""))
    play("headgate topic create log:data/users\nheadgate topic create log:data/orders")
    play("headgate run store.py --bounded")
    app.write_text(program)
    assert not Path("data/dlq").exists()
    checked = play("headgate check store.py\nheadgate graph store.py")
    assert "goes nowhere" not in checked and "users_lookup.replay" in checked
    changes = play("headgate plan store.py")
    assert re.search(r"= +users_lookup", changes), changes
    assert re.search(r"\+ +users_lookup.replay +new source", changes), changes
    commands = [line for line in before.splitlines() if " create " not in line]
    assert re.search(r"dead_letters +sink +2", play("\n".join(commands)))
    assert invoke(["replay", "log:data/other", "--job", "store"]) == 3
    assert invoke(["replay", "log:data/dlq", "--job", "store", "--where", "stp = 'a'"]) == 2
    app.write_text(program.replace("price INT", "price DOUBLE"))
    rows = [json.loads(line) for line in play(after).splitlines()]
    assert sorted((r["id"], r["user_id"], r["price"], r["name"]) for r in rows) == [
        (1, 7, 5.0, "Ann"),
        (2, 7, 4.5, "Ann"),
    ]
