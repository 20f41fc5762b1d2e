"""The programs in the documents are run: a page's one after the other, as a reader would."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import headgate as hg

DOCS = Path(__file__).parents[1] / "docs"
STEPS = (
    "aggregate", "dedupe", "join", "lookup", "process", "sink", "source", "top", "transform",
    "window",
)  # fmt: skip
PAGES = (
    "getting-started.md", "dead-letters.md", "delta.md", "extend.md", "formats.md", "iceberg.md",
    *(f"steps/{step}.md" for step in STEPS),
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.S | re.M)
    assert programs
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for program in programs:
        exec(compile(program, page, "exec", dont_inherit=True), module.__dict__)
    for found in vars(module).values():
        if isinstance(found, hg.JobDef):
            found.describe()
