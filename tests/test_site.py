"""The documentation site: pages are found, links lead somewhere, programs and commands run."""

from __future__ import annotations

import doctest
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.cli.main import invoke
from headgate.testing import JobDriver
from tools.docs.generated import commands, commands_page, with_other_names
from tools.docs.pages import DOCS, MADE, nav, prepare, problems

SOURCE = Path(hg.__file__).parent
PAGES = (
    "concepts/jobs.md", "concepts/time.md", "errors.md", "how-to/joins.md", "how-to/databases.md",
    "how-to/udfs.md", "how-to/testing.md", "how-to/late-data.md", "from-flink.md", "from-spark.md",
    "tutorials/upgrade.md", "reference/settings.md",
)  # fmt: skip
"""Pages with programs; those in tests/test_documents.py are run there."""
WITH_COMMANDS = (
    "../README.md", "quickstart.md", "how-to/late-data.md", "tutorials/upgrade.md",
    # tests/order.py runs those of one broker together, which it finds by these ids
    pytest.param("tutorials/reprocess.md", id="kafka-tutorials/reprocess.md"),
    pytest.param("tutorials/visits.md", id="kafka-tutorials/visits.md"),
    pytest.param("tutorials/store.md", id="pulsar-tutorials/store.md"),
)  # fmt: skip
BROKERS = {"pulsar://localhost:6650": "pulsar_url", "kafka://localhost:9094": "kafka_servers"}
"""Addresses that pages have, and the fixtures of the brokers that stand there."""
BLOCK = re.compile(r"^```(\w+)(?: title=\"(?P<file>[^\"]+)\")?\n(?P<text>.*?)^```", re.S | re.M)


def test_every_page_has_its_place_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    prepare(tmp_path)
    assert problems(tmp_path) == []
    paths = [entry.path for entry in nav()]
    assert len(paths) == len(set(paths))
    assert [path for path in paths if not (tmp_path / path).is_file()] == []
    written = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    apart = {page for page in written if page.startswith("decisions/")}
    assert written - apart - set(paths) == set(), "add these pages to nav in mkdocs.yml"
    listed = re.findall(
        r"^- \[[^\]]+\]\(([^)]+)\): (.*)$", (tmp_path / "llms.txt").read_text(), re.M
    )
    assert [path for path, _ in listed] == paths
    assert [path for path, about in listed if not about and path not in MADE] == []


def test_the_reference_of_commands_has_every_verb_and_option() -> None:
    page = commands_page()
    found = [" ".join(words) for words in commands()]
    assert len(found) > 35
    for verb in found:
        assert f"\n## headgate {verb}\n" in page
    assert "--savepoint-on-term" in page and "--detach" in page
    told = (DOCS / "cli.md").read_text(encoding="utf-8")
    groups = {verb.split()[0] for verb in found}
    assert {verb for verb in groups if f"headgate {verb}" not in told} == set()


def test_the_page_of_settings_has_every_variable() -> None:
    used = {
        name
        for file in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.sh")]
        for name in re.findall(r"HEADGATE_[A-Z_]+[A-Z]", file.read_text(encoding="utf-8"))
    }
    page = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(HEADGATE_[A-Z_]+)`", page))
    between_processes = {
        "HEADGATE_DETACHED", "HEADGATE_NOTES", "HEADGATE_SET", "HEADGATE_UI_SPARK_CONF",
    }  # fmt: skip
    assert used - told - between_processes == set(), "add these to docs/reference/settings.md"
    assert told <= used, "variables that are not there"


def test_the_api_reference_has_every_public_name() -> None:
    page = with_other_names((DOCS / "reference" / "api.md").read_text(encoding="utf-8"))
    told = re.findall(r"^::: headgate\.(\w+)$", page, re.M)
    assert sorted(told) == sorted(hg.__all__)
    assert with_other_names(page) == page


@dataclass
class Block:
    """A fenced block of a page."""

    kind: str
    file: str | None
    text: str


def blocks(page: str) -> Iterator[Block]:
    for found in BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")):
        yield Block(found[1], found["file"], found["text"])


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(
    page: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    spark: SparkSession,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    programs = [block.text for block in blocks(page) if block.kind == "python"]
    assert programs
    for program in programs:
        exec(compile(program, page, "exec", dont_inherit=True), module.__dict__)
    for name, found in list(vars(module).items()):
        if isinstance(found, hg.JobDef):
            found.describe()
        elif name.startswith("test_"):
            with ExitStack() as drivers:

                def make(job: hg.JobDef, drivers: ExitStack = drivers, **options: Any) -> JobDriver:
                    return drivers.enter_context(JobDriver(job, **options))

                names = signature(found).parameters
                found(*(make if n == "job_driver" else request.getfixturevalue(n) for n in names))


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_of_a_page_say_what_it_says(
    page: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    spark: SparkSession,
    capfd: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADGATE_HOME", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    said = ""
    fresh = False
    brokers = brokers_of(page, request)
    for block in blocks(page):
        text = block.text
        for address, broker in brokers.items():
            text = text.replace(address, broker)
        if block.file is not None:
            Path(block.file).write_text(text, encoding="utf-8")
        elif block.kind == "sh":
            said, fresh = "", True
            for line in text.splitlines():
                said += command(line, capfd, monkeypatch)
        elif block.kind == "text" and fresh:
            fresh = False
            options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            same = doctest.OutputChecker().check_output
            assert same(in_order(block.text), in_order(said), options), (
                f"{page} says\n{block.text}\nbut it was\n{said}"
            )


def brokers_of(page: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """Where the topics of a page are: tests share brokers, so names begin with `site_`."""
    found = {}
    for address, fixture in BROKERS.items():
        if address in (DOCS / page).read_text(encoding="utf-8"):
            scheme, servers = address.split("://")[0], request.getfixturevalue(fixture)
            found[f"{address}/"] = f"{scheme}://{servers.removeprefix(f'{scheme}://')}/site_"
    return found


def in_order(text: str) -> str:
    """Records sorted: those of several partitions come in no particular order."""
    groups = itertools.groupby(text.splitlines(), lambda line: line.startswith("{"))
    return "\n".join(
        line for rows, lines in groups for line in (sorted(lines) if rows else list(lines))
    )


def command(line: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a line prints: `cd`, a headgate command, or one that gets what others print."""
    if line.startswith("cd "):
        os.chdir(line.removeprefix("cd "))
        return ""
    before, pipe, own = line.rpartition(" | headgate ")
    words = shlex.split(own if pipe else line.removeprefix("headgate "))
    if pipe:
        made = subprocess.run(["bash", "-c", before], capture_output=True, check=True).stdout
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(made)))
    capfd.readouterr()
    code = invoke(words)
    out, err = capfd.readouterr()
    assert code == 0, f"{line}: {err}"
    return out


def test_the_quickstart_shows_what_init_writes() -> None:
    written = "".join(
        file.read_text() for file in (SOURCE / "resources" / "template").glob("*.txt")
    )
    shown = [block.text for block in blocks("quickstart.md") if block.kind == "text"]
    programs = [text for text in shown if text.startswith(("class ", "def "))]
    assert len(programs) == 2
    assert [text for text in programs if text not in written] == []
