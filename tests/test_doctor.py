"""The doctor: a machine in order gives only good checks, and each fault names its remedy."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from headgate.base.errors import HeadgateError
from headgate.doctor import checks as doctor
from headgate.doctor.checks import Check, run_checks
from headgate.jvm.spark_jars import KernelJar, find_spark_jars, read_kernel_jar


def check(name: str, *, home: Path | str, live: bool = False) -> Check:
    return next(found for found in run_checks(str(home), live) if found.name == name)


@pytest.mark.parametrize("live", [False, True])
def test_a_machine_in_order_passes_every_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live: bool
) -> None:
    for variable in ("SPARK_REMOTE", "SPARK_HOME", "PYSPARK_PYTHON"):
        monkeypatch.delenv(variable, raising=False)
    failed = [found for found in run_checks(str(tmp_path), live) if not found.ok]
    assert failed == []


def test_the_checks_leave_nothing_behind(tmp_path: Path) -> None:
    run_checks(str(tmp_path / "not" / "there"), live=True)
    assert list(tmp_path.iterdir()) == []


def test_no_java_is_told_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise HeadgateError("Spark needs Java", got="no Java at all", remedy="install Java")

    monkeypatch.setattr(doctor, "find_java", none)
    found = check("java", home=tmp_path)
    assert found == Check("java", False, "Spark needs Java (no Java at all)", "install Java")


def test_a_spark_home_of_another_version_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in ("spark-core_2.13-3.9.9.jar", "scala-library-2.13.1.jar"):
        (jars / name).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    found = check("pyspark", home=tmp_path)
    assert not found.ok
    assert "3.9.9" in found.detail
    assert "SPARK_HOME" in (found.remedy or "")
    assert not check("kernel", home=tmp_path).ok, "the kernel is not built for that Spark either"


def test_a_spark_home_without_jars_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    for name in ("pyspark", "scala", "kernel"):
        found = check(name, home=tmp_path)
        assert not found.ok
        assert found.remedy == "unset SPARK_HOME to use pyspark's own Spark"


def test_a_missing_kernel_jar_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "read_kernel_jar", lambda: None)
    found = check("kernel", home=tmp_path)
    assert not found.ok
    assert "make kernel" in (found.remedy or "")


def test_a_kernel_of_another_spark_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scala = find_spark_jars().scala
    other = KernelJar(tmp_path, spark="4.9.0", scala=scala, sources="0")
    monkeypatch.setattr(doctor, "read_kernel_jar", lambda: other)
    found = check("kernel", home=tmp_path)
    assert not found.ok
    assert "install pyspark==4.9.0" in (found.remedy or "")


def test_a_jar_that_is_not_ours_is_not_taken_for_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "some.jar"
    assert read_kernel_jar(path) is None
    path.write_text("no zip")
    assert read_kernel_jar(path) is None
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n")
    assert read_kernel_jar(path) is None


@pytest.mark.parametrize(("output", "ok"), [("2.7", False), ("{}.{}", True)])
def test_the_workers_python_must_be_the_drivers_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, ok: bool
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho {output.format(*sys.version_info[:2])}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(program))
    assert check("pyspark_python", home=tmp_path).ok is ok


def test_a_workers_python_that_does_not_run_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "nowhere"))
    assert not check("pyspark_python", home=tmp_path).ok


def test_spark_connect_is_said_not_to_be_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    found = check("spark_connect", home=tmp_path)
    assert not found.ok
    assert "unset SPARK_REMOTE" in (found.remedy or "")


def test_a_home_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = check("home", home=tmp_path / "file" / "home")
    assert not found.ok
    assert "HEADGATE_HOME" in (found.remedy or "")


def test_the_home_comes_from_the_environment_when_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path / "here"))
    found = next(found for found in run_checks() if found.name == "home")
    assert str(tmp_path / "here") in found.detail


def test_a_remote_home_is_written_to_only_when_live(tmp_path: Path) -> None:
    assert check("home", home="memory://jobs").ok
    assert check("home", home="memory://jobs", live=True).detail == "memory://jobs is writable"
    unknown = check("home", home="nosuch://jobs", live=True)
    assert not unknown.ok
    assert "nosuch" in (unknown.remedy or "")
