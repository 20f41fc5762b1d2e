"""Jars, packages and modules of the user's own, on a cluster whose worker has none of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from tests.clusters.user_code import maven_repository
from tests.reliability.processes import Cluster

APP = """
from dataclasses import dataclass

import headgate as hg
import labels
import prices
from pyspark.sql import functions as F

TWICE = F.col("n") * 2

@F.udf("string")
def label(n):
    return labels.label(n) + prices.suffix(n)

@dataclass
class Labelled:
    n: int
    twice: int
    name: str
    label: str

@dataclass
class Counted:
    n: int
    twice: int
    name: str
    label: str
    seen: int

class Count(hg.Process):
    seen = hg.value_state(int)

    def on_rows(self, row: Labelled, ctx: hg.Context) -> hg.Out[Counted]:
        self.seen.set((self.seen.get() or 0) + 1)
        yield Counted(row.n, row.twice, row.name, row.label, self.seen.get())

@hg.job("brought")
def brought(job: hg.Job) -> None:
    rows = job.source("rows", hg.topic(job.param("rows"), schema="n BIGINT, name STRING"))
    made = rows.select("n", TWICE.alias("twice"), F.expr("shout(name)").alias("name"),
                       label("n").alias("label"))
    counted = job.process("count", Count(), rows=made.key_by("name"))
    counted.sink("out", hg.topic(job.param("out")))
"""


def headgate(*words: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", *words],
        cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip


@pytest.mark.slow
def test_jars_packages_and_modules_reach_driver_and_executors(
    cluster: Cluster, jars: tuple[Path, Path], bare: Path, code: Path, tmp_path: Path
) -> None:
    (code / "job").mkdir()
    (code / "files").mkdir()
    (code / "job" / "app.py").write_text(APP)
    (code / "job" / "labels.py").write_text('def label(n):\n    return f"row {n}"\n')
    (code / "files" / "prices.py").write_text('def suffix(n):\n    return f" costs {n * 3}"\n')
    extension, needed = jars
    repository = maven_repository(tmp_path, extension)
    settings = tmp_path / "user.conf"
    settings.write_text(
        f"spark.jars.ivy {tmp_path / 'ivy'}\nspark.sql.extensions=example.Extensions\n"
        f"spark.jars.repositories={repository.as_uri()}\n"
    )
    TopicFiles(tmp_path / "rows").create(2)
    rows = [{"n": n, "name": f"name {n % 7}"} for n in range(60)]
    TopicFiles(tmp_path / "rows").append([Record(json.dumps(row)) for row in rows])

    said = headgate(
        "run", "job/app.py", "--bounded", "--home", str(tmp_path / "home"), "--parallelism", "2",
        "--set", f"rows=log:{tmp_path}/rows", "--set", f"out=log:{tmp_path}/out", "--",
        *cluster.flags(fail_every=0), "--properties-file", str(settings),
        "--packages", "example:user:1.0", "--jars", str(needed), "--py-files", "files/prices.py",
        cwd=code, env={"PYSPARK_PYTHON": str(bare)},
    )  # fmt: skip
    assert said.returncode == 0, said.stderr[-6000:]

    found = [json.loads(r.value) for r in TopicFiles(tmp_path / "out").read()]
    seen: dict[str, int] = {}
    truth = []
    for row in rows:
        name = f"{str(row['name']).upper()}!"
        seen[name] = seen.get(name, 0) + 1
        n = int(row["n"])
        truth.append((n, 2 * n, name, f"row {n} costs {3 * n}", seen[name]))
    # rows of a name come from both partitions, so which is first is not said; how many are is
    got = sorted((r["n"], r["twice"], r["name"], r["label"]) for r in found)
    assert got == sorted(row[:4] for row in truth)
    assert sorted((r["name"], r["seen"]) for r in found) == sorted((r[2], r[4]) for r in truth)
    started = next(e for e in Home(str(tmp_path / "home")).job("brought").current().events()
                   if e.kind == "started")  # fmt: skip
    spark = {s["name"]: s["value"] for s in started.details["config"]}
    assert spark["spark.sql.extensions"].split(",")[0] == "example.Extensions"
