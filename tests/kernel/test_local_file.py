"""Checkpoint files on a local disk: whole or not at all, never replaced unasked, with checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate import jvm


@pytest.fixture
def manager(spark: SparkSession, tmp_path: Path) -> Any:
    jvm: Any = spark._jvm
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    return jvm.org.apache.spark.sql.headgate.commit.FencedFileManager(at(spark, tmp_path), hadoop)


def at(spark: SparkSession, path: Path) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path(f"file:{path}")  # Hadoop wants blanks as they are


def write(stream: Any, data: bytes) -> None:
    for from_ in range(0, len(data), 700):  # pieces that do not fit the chunks of checksums
        stream.write(data[from_ : from_ + 700])


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 5000])
def test_hadoop_reads_it_and_finds_damage(
    spark: SparkSession, manager: Any, tmp_path: Path, size: int
) -> None:
    path, data = tmp_path / "a folder" / "file", bytes(n % 251 for n in range(size))
    stream = manager.createAtomic(at(spark, path), False)
    write(stream, data)
    assert not path.exists()
    stream.close()
    assert path.read_bytes() == data
    assert sorted(p.name for p in path.parent.iterdir()) == [".file.crc", "file"]
    assert jvm.verify_files(spark, [str(path)]) == {}
    if size:
        path.write_bytes(data[:-1] + b"\xff")
        assert list(jvm.verify_files(spark, [str(path)])) == [str(path)]


def test_who_comes_second_changes_nothing(
    spark: SparkSession, manager: Any, tmp_path: Path
) -> None:
    path = tmp_path / "0"
    first, second = (manager.createAtomic(at(spark, path), False) for _ in range(2))
    write(first, b"first")
    write(second, b"second")
    first.close()
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        second.close()
    assert path.read_bytes() == b"first"
    assert jvm.verify_files(spark, [str(path)]) == {}
    assert sorted(p.name for p in tmp_path.iterdir()) == [".0.crc", "0"]


def test_it_is_replaced_if_that_is_asked_for(
    spark: SparkSession, manager: Any, tmp_path: Path
) -> None:
    path = tmp_path / "schema"
    for data in (b"one", b"another"):
        stream = manager.createAtomic(at(spark, path), True)
        write(stream, data)
        stream.close()
        assert path.read_bytes() == data
        assert jvm.verify_files(spark, [str(path)]) == {}


def test_nothing_is_left_of_one_that_is_cancelled(
    spark: SparkSession, manager: Any, tmp_path: Path
) -> None:
    stream = manager.createAtomic(at(spark, tmp_path / "1"), False)
    write(stream, b"never")
    stream.cancel()
    stream.close()
    assert list(tmp_path.iterdir()) == []


def test_an_object_that_cannot_be_deleted_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    java: Any = spark._jvm
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    root = at(spark, tmp_path)
    files = java.org.apache.spark.sql.headgate.commit.StoredFiles(root, root.getFileSystem(hadoop))
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "1").write_bytes(b"v1")
    files.delete(at(spark, tmp_path / "commits" / "1"))
    assert not (tmp_path / "commits" / "1").exists()
    files.delete(at(spark, tmp_path / "commits" / "1"))  # it is away, as it shall be
    (tmp_path / "commits" / "2" / "full").mkdir(parents=True)  # which no deletion of a file takes
    with pytest.raises(Py4JJavaError, match="cannot delete file:"):
        files.delete(at(spark, tmp_path / "commits" / "2"))
