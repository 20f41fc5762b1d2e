"""A process function whose parts are in several files: a class is one class in the workers too."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.cli.app import load_app
from headgate.testing import JobDriver

FILES = {
    "hg_models": """
from dataclasses import dataclass

@dataclass
class Given:
    key: str

@dataclass
class Reported:
    key: str
    kind: str
""",
    "hg_helpers": """
from hg_models import Given, Reported

def kind(row):
    return "known" if isinstance(row, Given) else "unknown"

def reported(row):
    return Reported(row.key, kind(row))
""",
    "hg_locked": """
import threading

LOCK = threading.Lock()  # cannot be sent: the module has to be imported in the worker

def locked(text):
    with LOCK:
        return text
""",
    "hg_app": """
import headgate as hg
import hg_helpers
import hg_locked
from hg_helpers import kind
from hg_models import Given, Reported

class Parts(hg.Process):
    last = hg.value_state(Given)

    def on_rows(self, row: Given, ctx: hg.Context) -> hg.Out[Reported]:
        self.last.set(row)
        yield hg_helpers.reported(row)
        yield Reported(hg_locked.locked(kind(self.last.get())), kind(row))

@hg.job("parts")
def parts(job: hg.Job) -> None:
    rows = job.source("rows", hg.topic("log:rows", schema=Given))
    job.process("parts", Parts(), rows=rows.key_by("key")).sink("out", hg.topic("log:out"))
""",
}


def test_a_class_is_one_class_in_all_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        job = load_app(str(tmp_path / "hg_app.py")).job
        with JobDriver(job) as t:
            t.send("rows", {"key": "a"}).run()
            assert [(r["key"], r["kind"]) for r in t.rows("out")] == [
                ("a", "known"),
                ("known", "known"),
            ], json.dumps(t.metrics("parts"))
    finally:
        for name in FILES:
            sys.modules.pop(name, None)
