"""Logs of any size, by search and level: what comes back is compared with the file itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headgate.home.log_lines import LONGEST, WINDOW, LogFilter, read_back, read_on, tail
from headgate.ui.app import create_app
from tests.ui.small_home import EVIL, JOB, LOG, log_of, small_home

LINES = 30_000
TRACE = """05:00:00 checkpoint ck:1  10 records
05:00:01 Spark ERROR Executor: lost
\tat org.apache.spark.Executor.run(Executor.scala:1)
Traceback (most recent call last):
  File "app.py", line 3, in work

    raise ValueError("no")
ValueError: no
print of the user
26/11/19 05:00:02 WARN TaskSetManager: slow
{"at": "2026-11-19T05:00:03Z", "level": "INFO", "message": "x"}
error: the job has failed
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three windows of lines; every 97th is one to look for."""
    file = tmp_path_factory.mktemp("logs") / LOG
    with file.open("w") as out:
        for n in range(LINES):
            word = "a NEEDLE" if n % 97 == 0 else "something"
            out.write(f"05:00:00 line {n} with {word} {'-' * 300}\n")
    assert file.stat().st_size > 2 * WINDOW
    return file


def truth(file: Path, word: str) -> list[str]:
    return [line for line in file.read_text().splitlines() if word in line.lower()]


def test_a_search_that_goes_back_finds_every_line_once(large: Path) -> None:
    found: list[str] = []
    before, parts = None, 0
    while before != 0:
        part = read_back(large, before=before, limit=20, of=LogFilter("needle"))
        found = [line.text for line in part.lines] + found
        assert before is None or part.start < before
        before, parts = part.start, parts + 1
    assert found == truth(large, "needle") and parts > 3


def test_who_follows_gets_every_line_once(large: Path) -> None:
    found: list[str] = []
    after, size = 0, large.stat().st_size
    while after < size:
        part = read_on(large, after=after, limit=9_000)
        assert part.end > after
        found += [line.text for line in part.lines]
        after = part.end
    assert found == large.read_text().splitlines()


def test_a_log_larger_than_memory_opens_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / LOG
    file.touch()
    os.truncate(file, 1 << 40)  # holes, which take no room on the disk
    with file.open("a") as out:
        out.write("\nthe last\nline")
    part = read_back(file, limit=2)
    assert [line.text for line in part.lines] == ["the last", "line"]
    hole = read_back(file, before=part.lines[0].at - 1, limit=5)
    (line,) = hole.lines
    assert line.cut and len(line.text) == LONGEST and hole.start >= (1 << 40) - WINDOW


@pytest.mark.parametrize("count", [0, 1, 20, 900, 29_999, 10**6])
def test_the_command_line_prints_as_many_of_the_last_lines(large: Path, count: int) -> None:
    text, end = tail(large, count)
    assert end == large.stat().st_size
    assert text.splitlines() == (large.read_text().splitlines()[-count:] if count else [])


def test_a_line_without_an_end_comes_again_when_it_has_one(tmp_path: Path) -> None:
    file = tmp_path / LOG
    file.write_text("one\ntw")
    part = read_back(file, limit=10)
    assert [line.text for line in part.lines] == ["one", "tw"] and part.end == 4
    with file.open("a") as out:
        out.write("o\nthree\n")
    later = read_on(file, after=part.end, limit=10)
    assert [(line.at, line.text) for line in later.lines] == [(4, "two"), (8, "three")]
    assert read_on(file, after=later.end, limit=10).lines == ()


@pytest.mark.parametrize(
    ("least", "first_words"),
    [
        ("warn", ["05:00:01", "at", "Traceback", "File", "", "raise", "ValueError:", "26/11/19",
                  "error:"]),
        ("error", ["05:00:01", "at", "Traceback", "File", "", "raise", "ValueError:", "error:"]),
    ],
)  # fmt: skip
def test_traces_have_the_level_of_what_they_belong_to(
    tmp_path: Path, least: Any, first_words: list[str]
) -> None:
    file = tmp_path / LOG
    file.write_text(TRACE)
    part = read_back(file, limit=100, of=LogFilter(least=least))
    assert [(line.text.split() or [""])[0] for line in part.lines] == first_words


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(small_home(tmp_path)), base_url="http://127.0.0.1") as found:
        yield found


def test_logs_are_listed_read_and_saved(client: TestClient, tmp_path: Path) -> None:
    (file,) = client.get(f"/jobs/{JOB}/logs").json()["files"]
    size = log_of(tmp_path).stat().st_size
    assert file == {"name": LOG, "started": "2026-01-01T00:00:00.000Z", "size": size}
    part = client.get(f"/jobs/{JOB}/logs/{LOG}", params={"search": "IT SAID"}).json()
    assert [line["text"] for line in part["lines"]] == [f"03:04:05 it said {EVIL}"]
    assert (part["start"], part["end"], part["size"]) == (0, size, size)
    part = client.get(f"/jobs/{JOB}/logs/{LOG}", params={"level": "warn", "after": 0}).json()
    assert [line["level"] for line in part["lines"]] == ["warn"]
    assert client.get(f"/jobs/{JOB}/logs/other.log").status_code == 404
    saved = client.get(f"/jobs/{JOB}/logs/{LOG}/text")
    assert saved.text == log_of(tmp_path).read_text().replace("hunter2", "******")


def test_nobody_finds_a_secret_by_searching_for_it(client: TestClient) -> None:
    part = client.get(f"/jobs/{JOB}/logs/{LOG}", params={"search": "hunter"}).json()
    assert part["lines"] == []
    part = client.get(f"/jobs/{JOB}/logs/{LOG}", params={"search": "is short"}).json()
    assert [line["text"] for line in part["lines"]] == ["WARN db_password=****** is short"]
