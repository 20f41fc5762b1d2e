"""Sessions of the user's in a process of its own: refused by name, or used as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home

PROGRAM = """
import json
from pyspark.sql import SparkSession
import headgate as hg

def job(name):
    @hg.job(name)
    def made(job: hg.Job) -> None:
        users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
        rows = job.source("rows", hg.topic("log:rows", schema="id BIGINT"))
        found = rows.lookup("found", users, on="id", into="who", missing="side")
        found.select("id", "who.name AS name").sink("out", hg.topic(f"log:{name}"))
    return made

def refusal(work):
    try:
        work()
    except hg.UsageError as error:
        return str(error)

said = {}
wrong = SparkSession.builder.master("local[1]").config("spark.speculation", "true").getOrCreate()
said["speculation"] = refusal(lambda: hg.start(job("never"), spark=wrong, home="home"))
wrong.stop()

builder = SparkSession.builder.master("local[2]").appName("mine")
spark = hg.spark_session(builder, conf={"spark.sql.session.timeZone": "Asia/Tokyo"})
said["name"] = spark.sparkContext.appName
said["master"] = spark.sparkContext.master
said["zone"] = spark.conf.get("spark.sql.session.timeZone")
said["memory"] = refusal(lambda: hg.start(
    job("never"), spark=spark, home="home", conf={"spark.executor.memory": "7g"}))
before = spark.conf.get("spark.sql.shuffle.partitions")
handles = [hg.start(job(name), spark=spark, home="home", bounded=True, parallelism=n)
           for name, n in (("one", 1), ("three", 3))]
for handle in handles:
    handle.wait("3 minutes")
said["shown"] = [repr(handle) for handle in handles]
said["partitions"] = [before, spark.conf.get("spark.sql.shuffle.partitions")]
print(json.dumps(said))
"""


@pytest.mark.slow
def test_sessions_are_refused_by_name_or_used_as_they_are(tmp_path: Path) -> None:
    for name, rows in {"users": [{"id": i, "name": f"u{i}"} for i in range(5)],
                       "rows": [{"id": i % 5} for i in range(40)]}.items():  # fmt: skip
        TopicFiles(tmp_path / name).create(2)
        TopicFiles(tmp_path / name).append([Record(json.dumps(row)) for row in rows])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["speculation"].startswith("spark.speculation must be false")
    assert said["memory"].startswith("spark.executor.memory cannot be set in a session that runs")
    assert (said["name"], said["master"], said["zone"]) == ("mine", "local[2]", "Asia/Tokyo")
    assert said["partitions"][0] == said["partitions"][1], "that of the user's own session stays"
    home = Home(str(tmp_path / "home"))
    for name, partitions in (("one", 1), ("three", 3)):
        run = home.job(name).current()
        assert run is not None and run.read().parallelism == partitions
        got = sorted(json.loads(r.value)["name"] for r in TopicFiles(tmp_path / name).read())
        assert got == sorted(f"u{i % 5}" for i in range(40))
    assert all("FINISHED" in text and "records in 45" in text for text in said["shown"]), said
