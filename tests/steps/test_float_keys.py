"""Keys as Spark compares them: there is one zero and one NaN, also inside structs and arrays."""

from __future__ import annotations

import json
import math
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import RefusedError
from headgate.connectors.log.files import Record, TopicFiles
from headgate.graph.plan import BuiltJob
from headgate.home.layout import Home
from headgate.runtime.run import run
from headgate.snapshots.snapshot import snapshot_of
from headgate.snapshots.spark_log import latest_committed
from headgate.state import StateReader
from headgate.testing import JobDriver
from headgate.testing.rows import row_of
from tests.steps import float_keys as job

Make = Callable[..., JobDriver]


@pytest.mark.slow
def test_random_rows_as_plain_python_has_them(job_driver: Make) -> None:
    rng = random.Random(1)
    t, truth = job_driver(job.float_keys), job.Truth()
    got: dict[str, list[object]] = {sink: [] for sink in job.SINKS}
    for batch in range(2):
        sizes = [{"k": rng.choice(job.KEYS), "name": f"size {batch}.{n}"} for n in range(2)]
        boxes = [
            {k: v for k, v in job.random_row(rng, 0).items() if k in ("k", "flip", "n")}
            | {"name": f"box {batch}.{n}"}
            for n in range(3)
        ]
        rows = [job.random_row(rng, 100 * batch + n) for n in range(40)]
        t.send("sizes", *sizes).send("boxes", *boxes).send("rows", *rows)
        t.run(drain=batch == 1)
        truth.batch(sizes, boxes, rows)
        for sink in job.SINKS:
            got[sink] += job.shown(sink, t.rows(sink))
    truth.drain()
    for sink in job.SINKS:
        assert sorted(got[sink], key=repr) == sorted(truth.sinks[sink], key=repr), sink


FIXTURE = Path(__file__).parent.parent / "fixtures" / "float_keys.tar.gz"


@pytest.fixture
def old_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which 0.0 and -0.0 are two keys, with its topics, in the working directory."""
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def append(topic: str, *records: object) -> None:
    TopicFiles(topic).append([Record(value=json.dumps(r), key=None) for r in records], partition=0)


def rows_of(sink: str, built: BuiltJob) -> list[object]:
    """The rows of a sink after those that the old home has written."""
    (edge,) = next(n.step.inputs for n in built.nodes if n.step.id == sink)
    schema = built.node(edge.step).schemas[edge.output]
    old = {"named": 3, "unnamed": 2, "boxed": 2, "counted": 5}.get(sink, 0)
    return job.shown(sink, [row_of(r.value, schema) for r in TopicFiles(sink).read()][old:])


def test_an_old_home_is_refused_where_keys_that_are_one_cannot_be_merged(
    spark: SparkSession, old_home: Path
) -> None:
    told = r"one key now.* for \[0\.0, 1\.5\].*--allow-dropped-state"
    with pytest.raises(RefusedError, match=told):
        run(job.float_keys, home="home", bounded=True, spark=spark)
    home = Home("home").job("float_keys")
    current = home.current()
    assert current is not None and current.id == "r1"
    assert [r.id for r in home.runs()] == ["r1"]


@pytest.mark.slow
def test_an_old_home_goes_on_with_one_zero(spark: SparkSession, old_home: Path) -> None:
    append("boxes", {"k": math.nan, "flip": True, "n": 1, "name": "nan"})
    rows = [job.row(6, 0.0, 6, flip=True), job.row(7, 0.0, 7), job.row(8, math.nan, 8)]
    append("rows", *rows)
    outcome = run(
        job.float_keys, home="home", bounded=True, drain=True, spark=spark,
        allow_dropped_state=True,
    )  # fmt: skip
    assert outcome.error is None
    built = job.float_keys.build(spark=spark)
    truth = job.Truth()
    truth.batch([], [], job.OLD_ROWS + rows)
    truth.drain()
    for sink in ("tens", "visits"):
        assert sorted(rows_of(sink, built), key=repr) == sorted(truth.sinks[sink], key=repr)
    # the row of 0.0 is kept, and not that of -0.0
    assert sorted(rows_of("named", built)) == [(6, "-0.0", "zero"), (7, "0.0", "zero")]
    assert rows_of("unnamed", built) == [(8, "nan")]
    # rows that waited under either form of a NaN find its table row; 2 is still waiting
    assert sorted(rows_of("boxed", built)) == [
        (3, "nan", "nan"), (4, "nan", "nan"), (6, "-0.0", "plus"), (7, "0.0", "plus"),
        (8, "nan", "nan"),
    ]  # fmt: skip
    # of what cannot be merged, that of the key in normal form is kept: 1 and 3, not 2 and 4
    assert sorted(rows_of("counted", built)) == [(6, 2), (7, 3), (8, 2)]
    assert sorted(ids for *_, ids in rows_of("threes", built)) == [(1, 6, 7), (3, 8), (5,)]
    current = Home("home").job("float_keys").current()
    assert current is not None
    forked = current.checkpoints()[0].state
    assert {step: forked[step]["rows"] for step in forked} == {
        "by_size": 2, "by_box": 2, "per_size": 3, "per_box": 3, "per_pair": 3, "count_rows": 3,
    }  # fmt: skip


@pytest.mark.slow
def test_state_is_found_by_any_form_of_its_key(job_driver: Make) -> None:
    t = job_driver(job.float_keys)
    t.send("sizes", {"k": -0.0, "name": "zero"}, {"k": math.nan, "name": "nan"})
    t.send("rows", job.row(1, math.nan, flip=True), job.row(2, -0.0)).run()
    view = t.state("by_size")
    assert {text: view.get(k=k) for text, k in (("0", 0.0), ("-0", -0.0), ("nan", math.nan))} == {
        "0": {"name": "zero"}, "-0": {"name": "zero"}, "nan": {"name": "nan"},
    }  # fmt: skip
    current = Home(t.home).job("float_keys").current()
    assert current is not None
    batch = latest_committed(current)
    assert batch is not None
    reader = StateReader(t.spark, snapshot_of(current, batch))
    for given in (0.0, -0.0, "-0.0", "0"):
        assert [r.row.name for r in reader.get("by_size", {"k": given}).collect()] == ["zero"]
        assert [r.row.rows for r in reader.get("per_size", {"k": given}).collect()] == [1]
    assert [r.row.name for r in reader.get("by_size", {"k": "NaN"}).collect()] == ["nan"]


@hg.job("keyed_sinks")
def keyed_sinks(job: hg.Job) -> None:
    rows = job.source("rows", hg.topic("log:rows", schema="id BIGINT, k DOUBLE, l ARRAY<FLOAT>"))
    rows.sink("plain", hg.topic("log:plain", key="k"))
    rows.sink("nested", hg.topic("log:nested", key="l"))


def test_sinks_write_keys_in_normal_form(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    TopicFiles("rows").create(1)
    append("rows", *[{"id": n, "k": k, "l": [k]} for n, k in enumerate([0.0, -0.0, 1.5, None])])
    assert run(keyed_sinks, home="home", bounded=True, spark=spark).error is None
    found = {s: [(r.key, r.value) for r in TopicFiles(s).read()] for s in ("plain", "nested")}
    assert sorted(str(key) for key, _ in found["plain"]) == ["0.0", "0.0", "1.5", "None"]
    assert sorted(str(key) for key, _ in found["nested"]) == ["[0.0]", "[0.0]", "[1.5]", "[null]"]
    # the rows themselves stay as they came
    assert sum('"k":-0.0' in str(value) for _, value in found["plain"]) == 1
