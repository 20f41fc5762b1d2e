"""--set and the flags after --."""

from __future__ import annotations

import os

import pytest

from headgate.base.errors import UsageError
from headgate.cli.options import parse_params, parse_spark_flags


def test_params_are_pairs_and_a_value_may_hold_an_equals_sign() -> None:
    assert parse_params(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    assert parse_params(None) == {}


@pytest.mark.parametrize(
    ("pairs", "said"),
    [(["a"], "must be NAME=VALUE"), (["=1"], "must be NAME=VALUE"), (["a=1", "a=2"], "twice")],
)
def test_bad_params_are_refused(pairs: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_params(pairs)


def test_master_and_conf_are_understood_in_both_spellings() -> None:
    flags = parse_spark_flags(
        ["--master", "spark://h:7077", "--conf", "a=b", "--conf=c=d=e", "--verbose",
         "--packages", "x:y:1", "--driver-memory=2g"]
    )  # fmt: skip
    assert flags.master == "spark://h:7077"
    assert flags.conf == {"a": "b", "c": "d=e"}
    assert flags.others == ("--verbose", "--packages", "x:y:1", "--driver-memory=2g")


def test_other_flags_reach_sparks_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--name x pyspark-shell")
    parse_spark_flags(["--packages", "x:y:1"]).export()
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--name x --packages x:y:1 pyspark-shell"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["second.py"], "unexpected argument 'second.py'"),
        (["--master"], "--master must have a value"),
        (["--conf", "a"], "--conf must have a value"),
    ],
)
def test_bad_flags_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_spark_flags(words)


def test_py_files_are_found_in_flags_and_settings() -> None:
    flags = parse_spark_flags(
        ["--py-files", "a.py, b.zip", "--conf", "spark.submit.pyFiles=c.py", "--py-files=d.egg"]
    )
    assert flags.py_files == ["a.py", "b.zip", "d.egg", "c.py"]
