"""Loading the user's file: ``path/to/file.py:job`` to the job that it defines."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.base.errors import HeadgateError, Location, NotFoundError, UsageError
from headgate.base.near import did_you_mean, or_else

if TYPE_CHECKING:
    from headgate.api.job import JobDef


@dataclass(frozen=True)
class App:
    """A job and the file it came from."""

    job: JobDef
    file: Path

    @property
    def code(self) -> dict[str, str]:
        """Where the code is and its hash, for a run's record."""
        digest = hashlib.sha256(self.file.read_bytes()).hexdigest()
        return {"file": str(self.file), "sha256": digest}


def load_app(app: str, *, session: Callable[[], object] | None = None) -> App:
    """Import the file and find the job: by its variable, by its name, or the only one.

    A file that uses Spark's functions outside of its job (`@F.udf("string")`) can only be imported
    when there is a session: `session` makes it then, and the file is imported again.
    """
    file, wanted = find_app(app)
    jobs = _jobs(_import(file, session or _any_session))
    job = _pick(jobs, wanted, app.removesuffix(f":{wanted}"))
    _check_function(job)
    return App(job, file)


def find_app(app: str) -> tuple[Path, str]:
    """The file that an APP names, and the job in it, if it names one."""
    text, _, wanted = app.rpartition(":") if _names_a_job(app) else (app, "", "")
    file = Path(text).expanduser()
    if file.suffix != ".py":
        raise UsageError(
            "APP must be path/to/file.py or path/to/file.py:job",
            got=repr(app),
            remedy="name the file that defines the job",
        )
    if not file.is_file():
        raise NotFoundError(
            f"there is no file {text}", remedy="check the path; it is relative to this folder"
        )
    return file.resolve(), wanted


def _check_function(job: JobDef) -> None:
    try:
        inspect.signature(job.function).bind(object())
    except TypeError:
        code = getattr(job.function, "__code__", None)
        raise UsageError(
            f"the function of job '{job.name}' must take the job as its only argument",
            expected=f"def {getattr(job.function, '__name__', 'main')}(job: hg.Job) -> None",
            remedy="give it that parameter, and all others with job.param(...)",
            location=Location(code.co_filename, code.co_firstlineno) if code else None,
        ) from None


def _names_a_job(app: str) -> bool:
    head, colon, tail = app.rpartition(":")
    return bool(colon) and head.endswith(".py") and "/" not in tail


def _any_session() -> object:
    from headgate.runtime.session import get_session

    return get_session(parallelism=1)


def stop_session() -> None:
    """End the session that an import needed, with its JVM."""
    if "pyspark" in sys.modules:
        from headgate.runtime.session import stop_spark

        stop_spark()


def _import(file: Path, session: Callable[[], object]) -> dict[str, object]:
    # As python does for a script: modules beside the file can be imported.
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    name = file.stem if file.stem not in sys.modules else f"headgate_app_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} cannot be imported", remedy="check that it is a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            if not _lacks_session(error):
                raise
            session()
            spec.loader.exec_module(module)
    except HeadgateError:
        raise
    except SyntaxError as error:
        raise UsageError(
            f"{file.name} has a syntax error: {error.msg}",
            remedy="correct the line",
            location=Location(error.filename or str(file), error.lineno or 0),
        ) from error
    except (Exception, SystemExit) as error:
        if isinstance(error.__cause__, HeadgateError):  # Python 3.11 wraps what __set_name__ raises
            raise error.__cause__ from None
        raise UsageError(
            f"importing {file.name} failed with {type(error).__name__}: {error}",
            remedy="correct the line, or run the file with python to see more",
            location=_user_line(error, file),
        ) from error
    return vars(module)


def _lacks_session(error: Exception) -> bool:
    """Whether Spark said that there is no session yet: by its error, or by an assertion of its."""
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError

    if SparkContext._active_spark_context is not None:
        return False
    if isinstance(error, PySparkRuntimeError):
        return error.getCondition() == "SESSION_OR_CONTEXT_NOT_EXISTS"
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return isinstance(error, AssertionError) and "/pyspark/" in last.replace("\\", "/")


def _user_line(error: BaseException, file: Path) -> Location:
    """The innermost line of the user's own folder that the error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f for f in frames if Path(f.filename).parent == file.parent]
    return Location(mine[-1].filename, mine[-1].lineno or 0) if mine else Location(str(file), 1)


def _jobs(names: dict[str, object]) -> dict[str, JobDef]:
    from headgate.api.job import JobDef

    jobs: dict[str, JobDef] = {}
    for name, value in names.items():
        if isinstance(value, JobDef) and all(value is not job for job in jobs.values()):
            jobs[name] = value
    return jobs


def _pick(jobs: dict[str, JobDef], wanted: str, file: str) -> JobDef:
    known = ", ".join(f"{file}:{name}" for name in jobs)
    if not jobs:
        raise NotFoundError(
            f"{file} defines no job", remedy='define one with @hg.job("name"), or name another file'
        )
    if not wanted:
        if len(jobs) > 1:
            raise UsageError(f"{file} defines several jobs", remedy=f"choose one: {known}")
        return next(iter(jobs.values()))
    by_name = {job.name: job for job in jobs.values()}
    job = jobs.get(wanted) or by_name.get(wanted)
    if job is None:
        near = did_you_mean(wanted, {*jobs, *by_name}, prefix=f"{file}:")
        raise NotFoundError(
            f"{file} defines no job '{wanted}'", remedy=or_else(near, f"it has: {known}")
        )
    return job
