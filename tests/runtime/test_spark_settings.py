"""The user's settings of Spark beside ours: added to, never replaced; conflicts by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate import jvm
from headgate.base.errors import NotFoundError, UsageError
from headgate.base.java_properties import parse_properties
from headgate.runtime.spark_settings import (
    FIXED,
    for_the_context,
    for_the_jvm,
    refuse_conflicts,
)


def test_lists_are_added_to_and_defaults_give_way() -> None:
    effective = {
        "spark.jars": "file:///u/a.jar,file:///u/b.jar",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "Europe/Berlin",
    }
    got = for_the_context(
        effective, {"spark.master": "yarn"}, kernel="/h/kernel.jar", launched=True
    )
    assert got["spark.jars"] == "file:///u/a.jar,file:///u/b.jar,/h/kernel.jar"
    assert got["spark.sql.extensions"] == (
        f"io.delta.sql.DeltaSparkSessionExtension,{jvm.EXTENSIONS}"
    )
    assert "spark.sql.session.timeZone" not in got, "the user's stays"
    assert "spark.sql.catalog.spark_catalog" not in got
    assert "spark.shuffle.compress" not in got, "that is for one machine"
    assert got["spark.ui.enabled"] == "false"
    assert FIXED.items() <= got.items()


def test_settings_of_a_start_reach_a_jvm_that_was_there() -> None:
    conf = {"spark.master": "local[2]", "spark.jars": "c.jar", "spark.executor.memory": "2g"}
    got = for_the_context({"spark.jars": "a.jar"}, conf, kernel=None, launched=False)
    assert got["spark.jars"] == "a.jar,c.jar" and got["spark.executor.memory"] == "2g"


def test_tasks_are_not_written_down_for_pages_that_are_off() -> None:
    def kept(**more: str) -> str | None:
        effective = {f"spark.{name.replace('_', '.')}": value for name, value in more.items()}
        got = for_the_context(effective, {}, kernel=None, launched=True)
        return got.get("spark.headgate.status.listeners")

    assert kept(master="local[2]") == "false"
    assert kept(master="local[2]", ui_enabled="true") is None
    assert kept(master="yarn") is None, "its executors are asked for by what it is doing"


def test_files_of_the_user_decide_how_the_jvm_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    (tmp_path / "spark-defaults.conf").write_text(
        "# all jobs\nspark.driver.memory 9g\nspark.driver.extraJavaOptions=-XX:+UseZGC\n"
    )
    got = for_the_jvm({}, "local[2]", "-Dlog=x")
    assert got["spark.driver.memory"] == "9g" and got["spark.master"] == "local[2]"
    assert got["spark.driver.extraJavaOptions"] == "-XX:+UseZGC -Dlog=x"
    assert for_the_jvm({"spark.driver.memory": "1g"}, None, "")["spark.driver.memory"] == "1g"
    own = tmp_path / "own.conf"
    own.write_text("spark.driver.memory=5g\n")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {own} pyspark-shell")
    assert for_the_jvm({}, None, "")["spark.driver.memory"] == "5g"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--properties-file=gone.conf pyspark-shell")
    with pytest.raises(NotFoundError, match=r"no file gone\.conf"):
        for_the_jvm({}, None, "")


def test_a_conflict_is_refused_by_name() -> None:
    refuse_conflicts({"spark.speculation": "false", "spark.sql.extensions": "a.B"})
    with pytest.raises(UsageError, match=r"spark\.speculation must be false.* got true in x"):
        refuse_conflicts({"spark.speculation": "true"}, where=" in x")


def test_properties_are_read_as_java_reads_them() -> None:
    text = (
        "! note\n  a.b : 1\nc=x=y\n\nd\\ e\\:f=2\ng   h i\\\n     j\n"
        "k=\\u00e9\\t|\nl\nm=C\\:\\\\x\n"
    )
    assert parse_properties(text) == {
        "a.b": "1", "c": "x=y", "d e:f": "2", "g": "h ij", "k": "é\t|", "l": "", "m": "C:\\x",
    }  # fmt: skip
