"""The demo and the getting-started page, run as a newcomer runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.home.layout import Home
from headgate.ui.model import Model

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_demo_accounts_for_every_order(tmp_path: Path) -> None:
    sizes = ["--orders", "3000", "--users", "400", "--items", "40"]
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "store" / "demo.py"), "--dir", "demo", *sizes],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    last = ran.stdout.splitlines()[-1]
    counts = [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", last)]
    assert last.endswith("= 3,000 orders produced: every order is accounted for")
    assert sum(counts[:4]) == counts[4] == 3_000
    assert min(counts) > 0, "each kind of order is there"

    # The step table shows the same numbers as the topics.
    lines = [line.split() for line in ran.stdout.splitlines()]
    columns = next(words for words in lines if words[:2] == ["STEP", "KIND"])

    def shown(kind: str, column: str) -> list[int]:
        rows = [words for words in lines if len(words) > 2 and words[1] == kind]
        return [int(row[columns.index(column)].replace(",", "")) for row in rows]

    assert shown("sink", "OUT") == counts[:4]
    assert shown("lookup", "MISSING") == counts[1:3]
    produced = json.loads((tmp_path / "demo" / "data" / "produced.json").read_text())["produced"]
    assert counts[3] == produced["orders_broken"]

    # So does the web interface, which is offered at the end, on every step and edge.
    assert "ui --home demo/home" in ran.stderr.splitlines()[-1]
    graph = Model(Home(tmp_path / "demo" / "home")).job("store").graph
    sinks = ("enriched", "missing_users", "missing_items", "malformed")
    assert [graph.node(sink).records_out for sink in sinks] == counts[:4]
    assert [edge.records for edge in graph.edges if edge.target in sinks] == counts[:4]
    assert all(edge.records for edge in graph.edges)


@pytest.mark.long
def test_the_store_on_pulsar_goes_on_from_a_checkpoint_without_reading_its_tables(
    tmp_path: Path,
) -> None:
    sizes = ["--orders", "3000", "--users", "400", "--items", "40"]
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "store" / "demo_pulsar.py"), "--dir", "demo",
         *sizes],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    *_, read_again, last = ran.stdout.splitlines()
    assert read_again == "users and items that the new run read: 0"
    counts = [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", last)]
    assert last.endswith("= 3,000 orders produced: every order is there once")
    assert sum(counts[:4]) == counts[4] == 3_000
    assert min(counts) > 0, "each kind of order is there"


# In part: test_site.py runs the commands of the quickstart, in one process.
@pytest.mark.long
def test_the_getting_started_page_does_what_it_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text()
    section = page[page.index("## A job of your own") : page.index("`--bounded` reads")]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    (program,) = (text for language, text in blocks if language == "python")
    make, use = (text for language, text in blocks if not language)
    (tmp_path / "sales.py").write_text(program)
    program_folder = tmp_path / "bin"
    program_folder.mkdir()
    command = program_folder / "headgate"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headgate.cli.main "$@"\n')
    command.chmod(0o755)
    ran = subprocess.run(
        ["bash", "-euc", make + use],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{program_folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert rows == [{"shop": 1, "sum": 5.5, "city": "Oslo"}, {"shop": 9, "sum": 1.0}]
