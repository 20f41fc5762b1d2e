"""The archive of Spark's classes, and starting Spark's JVM without its launcher."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.base.errors import UsageError
from headgate.jvm import class_archive, launch
from headgate.jvm.class_archive import VARIABLE, archive_path, keep, make_later
from headgate.jvm.java import JavaHome, find_java
from headgate.jvm.launch import VECTOR_MODULE, known_command
from headgate.jvm.spark_jars import find_spark_jars

OPTIONS = '-XX:+UseParallelGC "-Dname=a b"'
SETTINGS = {
    "spark.driver.memory": "3g",
    "spark.driver.extraJavaOptions": OPTIONS,
    "spark.master": "local[2]",
    "spark.jars": "/my jars/one.jar",
}
JOB = """
import headgate as hg

@hg.job("copy")
def copy(job):
    numbers = job.source("numbers", hg.topic("log:{topic}", schema="n BIGINT"))
    numbers.sink("shown", hg.ConsoleSink())
"""


@pytest.fixture
def java() -> JavaHome:
    return find_java()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, "auto")
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set that the launcher looks at."""
    for name in [name for name in os.environ if name.startswith("SPARK_")]:
        monkeypatch.delenv(name)
    for name in ("PYSPARK_SUBMIT_ARGS", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_the_command_is_the_one_that_sparks_launcher_makes(
    java: JavaHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 '-Dmine=x y'")
    jars = find_spark_jars().folder
    pairs = [word for pair in SETTINGS.items() for word in ("--conf", "=".join(pair))]
    main = ["org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"]
    ran = subprocess.run(
        [str(java.executable), "-cp", f"{jars}/*", *main, *pairs, "pyspark-shell"],
        env={**os.environ, "SPARK_HOME": str(jars.parent), "SPARK_SCALA_VERSION": "2.13",
             "JAVA_HOME": str(java.path)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    made = [word.strip() for word in ran.stdout.split("\0") if word.strip()]
    ours = known_command(java, SETTINGS, [])
    assert ours is not None
    at = made.index("org.apache.spark.deploy.SparkSubmit")
    assert VECTOR_MODULE in made
    made.remove(VECTOR_MODULE)  # of which Java would warn on every start
    at -= 1
    assert ours[: at + 1] == made[: at + 1]
    # the settings, in any order, and what is run
    assert sorted(ours[at + 1 :]) == sorted(made[at + 1 :])
    assert ours[-1] == made[-1] == "pyspark-shell"


@pytest.mark.parametrize(
    "name",
    ["SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DRIVER_MEMORY", "SPARK_DIST_CLASSPATH",
     "SPARK_PREPEND_CLASSES", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_SUBMIT_ARGS"],
)  # fmt: skip
def test_a_variable_that_the_launcher_reads_is_left_to_it(
    name: str, java: JavaHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert known_command(java, SETTINGS, []) is not None
    monkeypatch.setenv(name, str(find_spark_jars().folder.parent))
    assert known_command(java, SETTINGS, []) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("spark.driver.extraClassPath", "/a.jar"), ("spark.driver.extraLibraryPath", "/lib"),
     ("spark.driver.defaultJavaOptions", "-Da=b"), ("spark.submit.deployMode", "cluster"),
     ("spark.driver.extraJavaOptions", "-Xmx1g"), ("spark.driver.extraJavaOptions", '-Da="b')],
)  # fmt: skip
def test_a_setting_that_the_launcher_reads_is_left_to_it(
    name: str, value: str, java: JavaHome
) -> None:
    assert known_command(java, {**SETTINGS, name: value}, []) is None


def test_an_archive_is_used_if_it_is_there_and_may_be(
    java: JavaHome, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert class_archive.java_options(java) == []
    path = archive_path(java, find_spark_jars())
    assert path.is_relative_to(cache)
    path.parent.mkdir(parents=True)
    path.touch()
    assert class_archive.java_options(java) == [f"-XX:SharedArchiveFile={path}", "-Xlog:cds*=off"]
    monkeypatch.setenv(VARIABLE, "off")
    assert class_archive.java_options(java) == []
    monkeypatch.setenv(VARIABLE, "sometimes")
    with pytest.raises(UsageError, match="must be one of auto, use, off"):
        class_archive.java_options(java)


def test_other_jars_have_another_archive(java: JavaHome, tmp_path: Path) -> None:
    jars = find_spark_jars()
    copy = tmp_path / "jars"
    copy.mkdir()
    for jar in jars.folder.glob("s*.jar"):
        (copy / jar.name).write_bytes(b"jar")
    other = type(jars)(copy, jars.spark, jars.scala)
    first = archive_path(java, other)
    assert first != archive_path(java, jars)
    assert first == archive_path(java, other)
    next(copy.iterdir()).write_bytes(b"another jar")
    assert archive_path(java, other) != first


def test_the_last_used_archives_stay(cache: Path) -> None:
    folder = cache / "classes"
    folder.mkdir(parents=True)
    for age, name in enumerate("abcd"):
        (folder / f"{name}.jsa").touch()
        os.utime(folder / f"{name}.jsa", (1000 - age, 1000 - age))
    (folder / "new").write_text("classes")
    assert keep(folder / "new", folder / "e.jsa")
    assert sorted(path.name for path in folder.iterdir()) == ["a.jsa", "b.jsa", "e.jsa"]


def test_it_is_made_by_a_process_of_its_own_once(
    java: JavaHome, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program stands for the training: it writes a line for each time that it is run."""
    ran = tmp_path / "ran"
    (tmp_path / "program.py").write_text(
        f"import os\nopen({str(ran)!r}, 'a').write(f'{{os.getsid(0) == os.getpid()}}\\n')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    path = archive_path(java, find_spark_jars())
    make_later(java, "program")
    _until(lambda: ran.exists() and ran.read_text() == "True\n")

    for name, value in (("CI", "true"), (VARIABLE, "use"), (VARIABLE, "off"), (VARIABLE, "bad")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            make_later(java, "program")
    assert not keep(tmp_path / "none", path)  # this Java makes none: not tried again today
    make_later(java, "program")
    path.touch()
    make_later(java, "program")
    (cache / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "file"))
    make_later(java, "program")  # there can be no folder
    time.sleep(0.5)
    assert ran.read_text() == "True\n"


def test_a_session_uses_the_archive(spark: SparkSession, java: JavaHome) -> None:
    """With `make test` there is one."""
    found = class_archive.java_options(java)
    beans = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    given = list(beans.getRuntimeMXBean().getInputArguments())
    assert [word for word in given if "SharedArchiveFile" in word] == found[:1]


@pytest.mark.slow
def test_a_start_with_a_damaged_archive_is_quiet_and_goes_the_launchers_way_too(
    java: JavaHome, cache: Path, tmp_path: Path
) -> None:
    path = archive_path(java, find_spark_jars())
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not an archive" * 1000)
    path.parent.chmod(0o555)
    (tmp_path / "job.py").write_text(JOB.format(topic=tmp_path / "numbers"))
    headgate = [sys.executable, "-m", "headgate.cli.main"]
    subprocess.run([*headgate, "topic", "create", f"log:{tmp_path}/numbers"], check=True)
    said = []
    try:
        for more in ({}, {"PYSPARK_SUBMIT_ARGS": "--name mine pyspark-shell"}):
            ran = subprocess.run(
                [*headgate, "check", str(tmp_path / "job.py")], cwd=tmp_path,
                env={**os.environ, **more}, capture_output=True, text=True, timeout=120,
            )  # fmt: skip
            assert ran.returncode == 0, ran.stderr
            said.append(ran.stderr)
    finally:
        path.parent.chmod(0o755)
    # the first line is of Spark's launcher or of Java itself
    assert all("archive" not in text and "shared" not in text.lower() for text in said), said
    assert path.read_bytes() == b"not an archive" * 1000


@pytest.mark.long
def test_training_makes_an_archive_that_java_takes(java: JavaHome, cache: Path) -> None:
    from headgate.testing.training import make

    assert make()
    path = archive_path(java, find_spark_jars())
    jars = find_spark_jars().folder
    slf4j = next(jars.glob("slf4j-api-*.jar"))
    ran = subprocess.run(
        [str(java.executable), f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:class+load",
         "-cp", f"{jars.parent}/conf:{slf4j}:{jars}/*", "org.apache.spark.deploy.SparkSubmit",
         "--version"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    line = next(line for line in ran.stdout.splitlines() if ".deploy.SparkSubmit " in line)
    assert "shared objects file (top)" in line
    assert not list(path.parent.glob(".new-*"))


@pytest.fixture
def begin(java: JavaHome, monkeypatch: pytest.MonkeyPatch) -> Callable[[], launch._Begun]:
    """Calls `begin_jvm`, twice; a process that waits stands in for the JVM."""
    waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    monkeypatch.setattr(launch, "_command", lambda *_, **__: waits)
    monkeypatch.setattr(SparkContext, "_gateway", None)

    def begin() -> launch._Begun:
        launch.begin_jvm(java, {})
        launch.begin_jvm(java, {})
        (found,) = launch._begun
        return found

    return begin


def test_a_jvm_that_was_begun_is_taken_by_a_start_with_the_same_command(
    begin: Callable[[], launch._Begun],
) -> None:
    begun = begin()
    assert launch._taken(begun.command) is begun
    assert begun.process.poll() is None
    begun.end()
    assert not begun.folder.exists()


def test_a_jvm_that_was_begun_ends_if_the_users_file_has_set_a_variable(
    begin: Callable[[], launch._Begun], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = begin()
    monkeypatch.setenv("SET_BY_A_FILE", "1")
    assert launch._taken(begun.command) is None
    assert begun.process.poll() is not None
    assert not begun.folder.exists()


def test_a_jvm_that_was_begun_ends_if_other_settings_are_wanted(
    begin: Callable[[], launch._Begun],
) -> None:
    begun = begin()
    assert launch._taken([*begun.command, "-Xmx1g"]) is None
    assert begun.process.poll() is not None


def test_a_jvm_that_was_begun_ends_if_the_users_file_has_started_one(
    begin: Callable[[], launch._Begun], java: JavaHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = begin()
    monkeypatch.setattr(SparkContext, "_gateway", object())
    launch.start_jvm(java, {})
    assert begun.process.poll() is not None


def _until(holds: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
