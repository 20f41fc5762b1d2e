"""Loading the user's file: which job, and whose line is to blame."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from headgate.base.errors import ExitCode, HeadgateError, NotFoundError, UsageError
from headgate.cli.app import load_app
from headgate.connectors.log.files import TopicFiles

ONE = 'import headgate as hg\n@hg.job("store")\ndef my_store(job):\n    pass\n'
TWO = ONE + '@hg.job("other")\ndef my_other(job):\n    pass\n'


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return tmp_path / f"app_{uuid4().hex}.py"


def test_the_only_job_needs_no_name(app: Path) -> None:
    app.write_text(ONE + "again = my_store\n")
    loaded = load_app(str(app))
    assert loaded.job.name == "store"
    assert loaded.code["file"] == str(app)
    assert len(loaded.code["sha256"]) == 64


@pytest.mark.parametrize("wanted", ["my_other", "other"])
def test_a_job_is_found_by_its_variable_or_its_name(app: Path, wanted: str) -> None:
    app.write_text(TWO)
    assert load_app(f"{app}:{wanted}").job.name == "other"


def test_several_jobs_are_listed(app: Path) -> None:
    app.write_text(TWO)
    with pytest.raises(UsageError, match="several jobs") as error:
        load_app(str(app))
    assert error.value.remedy == f"choose one: {app}:my_store, {app}:my_other"


def test_an_unknown_job_is_not_found(app: Path) -> None:
    app.write_text(ONE)
    with pytest.raises(NotFoundError, match=r"no job 'x': it has: .*:my_store"):
        load_app(f"{app}:x")


def test_a_file_without_a_job_says_so(app: Path) -> None:
    app.write_text("x = 1\n")
    with pytest.raises(NotFoundError, match="defines no job"):
        load_app(str(app))


def test_a_file_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFoundError, match=r"there is no file nowhere\.py") as error:
        load_app("nowhere.py")
    assert error.value.exit_code == ExitCode.NOT_FOUND


def test_something_else_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="APP must be path/to/file"):
        load_app("store")


def test_an_import_error_shows_the_users_line(app: Path) -> None:
    app.write_text("import headgate\n\nvalue = undefined_name\n")
    with pytest.raises(UsageError) as error:
        load_app(str(app))
    assert "NameError: name 'undefined_name' is not defined" in str(error.value)
    assert str(error.value).endswith(f"[{app}:3]")


def test_an_error_in_a_module_beside_it_shows_that_line(app: Path) -> None:
    beside = app.with_name(f"beside_{uuid4().hex}.py")
    beside.write_text("def f():\n    raise ValueError('deep')\n")
    app.write_text(f"import {beside.stem}\n{beside.stem}.f()\n")
    with pytest.raises(UsageError, match=f"ValueError: deep.*{beside.stem}.py:2"):
        load_app(str(app))


def test_a_syntax_error_shows_its_line(app: Path) -> None:
    app.write_text("x = 1\ndef broken(:\n")
    with pytest.raises(UsageError, match="syntax error") as error:
        load_app(str(app))
    assert error.value.location is not None
    assert error.value.location.line == 2


def test_an_error_of_ours_comes_through_as_it_is(app: Path) -> None:
    app.write_text('import headgate as hg\n@hg.job("bad name")\ndef f(job):\n    pass\n')
    with pytest.raises(HeadgateError, match="bad name") as error:
        load_app(str(app))
    assert error.value.exit_code == ExitCode.USAGE
    assert f"{app}:2" in str(error.value)


@pytest.mark.slow
def test_a_file_may_use_sparks_functions_outside_of_its_job(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import headgate as hg\n"
        "from pyspark.sql import functions as F\n"
        "TWICE = F.col('n') * 2\n"
        "@F.udf('string')\n"
        "def label(n):\n    return f'row {n}'\n"
        "@hg.job('labels')\n"
        "def labels(job: hg.Job) -> None:\n"
        "    rows = job.source('rows', hg.topic('log:rows', schema='n BIGINT'))\n"
        "    made = rows.select(label('n').alias('label'), TWICE.alias('m'))\n"
        "    made.sink('out', hg.ConsoleSink())\n"
    )
    TopicFiles(tmp_path / "rows").create(1)
    checked = subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", "check", "app.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.startswith("labels: 3 steps")
