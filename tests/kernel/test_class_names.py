"""No file of a checkpoint or a home names a class of the kernel: classes may move."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.connectors.log.files import Record, TopicFiles
from headgate.jvm.gateway import PACKAGE
from tests.kernel.support import decode, log_sink, read_stream, run, spec

OLD_HOME = Path(__file__).resolve().parents[1] / "fixtures" / "float_keys.tar.gz"


def naming(folder: Path) -> list[str]:
    """The files below a folder that name the kernel's package."""
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and PACKAGE.encode() in path.read_bytes()
    ]


def test_a_home_of_an_older_version_names_no_class(tmp_path: Path) -> None:
    with tarfile.open(OLD_HOME) as archive:
        archive.extractall(tmp_path, filter="data")
    assert list(tmp_path.rglob("offsets/0")), "the home has a checkpoint"
    assert naming(tmp_path) == []


def test_a_new_checkpoint_names_no_class(spark: SparkSession, tmp_path: Path) -> None:
    topic = TopicFiles(tmp_path / "in")
    topic.create(1)
    topic.append([Record(json.dumps({"id": n})) for n in range(3)])
    frame = decode(read_stream(spark, topic.path), "id BIGINT")
    frame = frame.selectExpr("0 AS __hg_sink", "struct(id) AS r0")
    run(frame, spec("r1", log_sink("out", tmp_path / "out")), tmp_path / "ck")
    assert (tmp_path / "ck" / "commits" / "0").exists()
    assert naming(tmp_path) == []


def test_a_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(f'{{"class":"{PACKAGE}.log.LogSourceProvider"}}')
    assert naming(tmp_path) == ["x"]
