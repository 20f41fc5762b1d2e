"""Sinks into files by columns and by rows, read back with pyarrow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

import headgate as hg
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
SCHEMA = "id BIGINT, day DATE, place STRING, amount DOUBLE"
PLACES = ["a/b", "x=y", "ü %", "", None]


def row(n: int) -> dict[str, Any]:
    return {"id": n * 7919, "day": f"2026-03-{1 + n % 2:02d}", "place": PLACES[n % 5],
            "amount": n / 4}  # fmt: skip


def job_into(sink: hg.Sink) -> hg.JobDef:
    @hg.job("split")
    def split(job: hg.Job) -> None:
        job.source("rows", hg.topic("log:rows", schema=SCHEMA)).sink("out", sink)

    return split


def read(root: Path) -> list[dict[str, Any]]:
    """All rows that the manifests name, with the values that are in the names of folders."""
    found = []
    for manifest in sorted(root.glob("batch=*/_manifest.json")):
        for file in json.loads(manifest.read_text())["files"]:
            at = manifest.parent / file["name"]
            rows = pq.ParquetFile(at).read().to_pylist()
            assert (len(rows), at.stat().st_size) == (file["rows"], file["bytes"])
            names = dict(part.split("=", 1) for part in Path(file["name"]).parts[:-1])
            values = {
                name: None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
                for name, value in names.items()
            }
            found += [{**each, **values} for each in rows]
    return found


def truth(n: int) -> dict[str, Any]:
    return {**row(n), "place": row(n)["place"] or None}  # Hive has no empty text


@pytest.mark.parametrize("rows_per_file", [None, 3])
def test_rows_lie_in_folders_by_their_values(
    job_driver: Make, tmp_path: Path, rows_per_file: int | None
) -> None:
    sink = hg.FilesSink(str(tmp_path), partition_by=["day", "place"], rows_per_file=rows_per_file)
    t = job_driver(job_into(sink), real_sinks={"out": lambda: read(tmp_path)})
    for n in range(60):
        t.send("rows", row(n), partition=n % 2)
    t.crash(at="mid_sink").restore().run()
    t.send("rows", *(row(n) for n in range(60, 80))).crash(at="before_sink").restore().run()
    found = sorted(read(tmp_path), key=lambda each: each["id"])
    assert found == [truth(n) for n in range(80)]
    # places without a name share a folder, with 12 rows of a task beside 6 in each of three; in the
    # second batch one task has both days: 4 rows beside 2
    files = list(tmp_path.glob("batch=*/day=*/place=*/part-*.parquet"))
    assert len(files) == (16 if rows_per_file is None else 30)
    assert list((tmp_path / "_staging").iterdir()) == []


def test_a_file_is_full_after_so_many_rows(job_driver: Make, tmp_path: Path) -> None:
    sink = hg.FilesSink(str(tmp_path), rows_per_file=7)
    t = job_driver(job_into(sink), real_sinks={"out": lambda: read(tmp_path)})
    t.send("rows", *(row(n) for n in range(20))).run()
    (manifest,) = tmp_path.glob("batch=*/_manifest.json")
    files = json.loads(manifest.read_text())["files"]
    assert [file["rows"] for file in files] == [7, 7, 6]
    assert [file["name"].partition(".")[0] for file in files] == [
        "part-00000", "part-00000-1", "part-00000-2",
    ]  # fmt: skip


def test_many_folders_at_once_have_few_open_files(job_driver: Make, tmp_path: Path) -> None:
    t = job_driver(
        job_into(hg.FilesSink(str(tmp_path), partition_by=["id"])),
        real_sinks={"out": lambda: read(tmp_path)},
    )
    t.send("rows", *(row(n % 70) for n in range(140))).run()
    found = sorted(int(each["id"]) for each in read(tmp_path))
    assert found == sorted(row(n % 70)["id"] for n in range(140))


def test_what_cannot_work_is_refused() -> None:
    def build(sink: hg.Sink) -> None:
        job_into(sink).build(check_connectors=False)

    with pytest.raises(hg.GraphError, match="partition_by must name columns of the rows"):
        build(hg.FilesSink("out", partition_by=["year"]))
    with pytest.raises(hg.GraphError, match="there must be a column beside"):
        build(hg.FilesSink("out", partition_by=["id", "day", "place", "amount"]))
    with pytest.raises(hg.GraphError, match="rows_per_file must be at least 1"):
        hg.FilesSink("out", rows_per_file=0).check()
    with pytest.raises(hg.GraphError, match="partition_by must be names of columns"):
        hg.FilesSink("out", partition_by="day").check()
