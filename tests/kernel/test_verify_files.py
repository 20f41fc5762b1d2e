"""Files of a checkpoint compared with the checksums beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import jvm
from tests.kernel.state_support import Query, users_job


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a query with changelogs, and of its state as snapshots."""
    root = tmp_path_factory.mktemp("verify")
    query = Query(spark, users_job(), root, root / "spark", 2)
    for round in range(2):
        query.send("users", *[{"id": k * 11, "name": f"u{round}"} for k in range(500)]).run()
    query.rewritten(root / "made")
    return root


def main_files(root: Path, pattern: str = "*") -> list[Path]:
    found = [p for p in root.rglob(pattern) if p.is_file() and not p.name.endswith(".crc")]
    return [p for p in found if {"spark", "made"} & set(p.parts)]


def changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.unlink()
    path.write_bytes(data)


def test_whole_files_have_nothing_wrong(spark: SparkSession, made: Path) -> None:
    paths = [str(p) for p in main_files(made)]
    assert len(paths) > 20
    assert jvm.verify_files(spark, paths) == {}
    assert jvm.verify_files(spark, []) == {}


@pytest.mark.parametrize("pattern", ["*.changelog", "*.zip", "*.sst"])
def test_damage_is_found(spark: SparkSession, made: Path, pattern: str) -> None:
    path = main_files(made, pattern)[0]
    data = path.read_bytes()
    try:
        changed(path)
        assert jvm.verify_files(spark, [str(path)]) == {str(path): "its checksum is another"}
        path.write_bytes(data[:-7])
        found = jvm.verify_files(spark, [str(path), str(made / "made" / "metadata")])
        assert list(found) == [str(path)]
        path.unlink()
        assert jvm.verify_files(spark, [str(path)]) == {str(path): "it is missing"}
    finally:
        path.write_bytes(data)
