"""The Python of executors against the driver's: a difference is refused before the first batch."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from headgate.base.errors import RefusedError
from headgate.failures import explain
from headgate.runtime.home_probe import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Versions = Mapping[str, str | None]
"""host, python (without its last number), pyspark, pyarrow, pandas; None for what is not there."""

_TASKS_AN_EXECUTOR = 4
_MUST_BE_SAME = {"python": "Python", "pyspark": "pyspark"}
_MUST_BE_THERE = ("pyarrow", "pandas")


def check_workers(spark: SparkSession, say: Callable[[str], None]) -> None:
    """Ask the Python of the executors for its versions.

    A job without Python code needs none there: where it does not start at all, that is a warning.
    """
    if is_local(str(spark.sparkContext.master)):
        return
    driver = _versions_here()
    try:
        found = _ask(spark)
    except Exception as error:
        text = str(error)
        if "PYTHON_VERSION_MISMATCH" in text or "different minor version" in text:
            raise RefusedError(
                f"executors do not run the driver's Python {driver['python']}",
                remedy="install the same minor version on all machines, and name it in "
                "PYSPARK_PYTHON",
            ) from error
        say(
            "warning: Python does not run on the executors, so code in Python would fail: "
            f"{explain(text).sentence}"
        )
        return
    problem, lacks = compare(driver, found)
    if problem is not None:
        raise problem
    if lacks is not None:
        say(f"warning: {lacks}")


def compare(driver: Versions, found: list[Versions]) -> tuple[RefusedError | None, str | None]:
    """What must be refused, and what lacks for code in Python.

    >>> here = {"host": "a", "python": "3.11", "pyspark": "4.2.0", "pyarrow": "1", "pandas": "2"}
    >>> print(compare(here, [{**here, "host": "b", "pyspark": "4.1.1"}])[0].message)
    the executor on b has pyspark 4.1.1, and the driver 4.2.0
    >>> compare(here, [{**here, "host": "b", "pandas": None}])[1]
    'the Python of the executor on b has no pandas: process functions need it'
    """
    for worker in found:
        for name, words in _MUST_BE_SAME.items():
            if worker[name] != driver[name]:
                return RefusedError(
                    f"the executor on {worker['host']} has {words} {worker[name]}, and the driver "
                    f"{driver[name]}",
                    remedy="install the same version on all machines",
                ), None
    for worker in found:
        for name in _MUST_BE_THERE:
            if worker[name] is None:
                return None, (
                    f"the Python of the executor on {worker['host']} has no {name}: process "
                    "functions need it"
                )
    return None, None


def _ask(spark: SparkSession) -> list[Versions]:
    context = spark.sparkContext
    executors = max(1, context._jsc.sc().getExecutorMemoryStatus().size() - 1)
    tasks = executors * _TASKS_AN_EXECUTOR

    # inside, so that it travels as it is: the worker need not have this package for it
    def look(_: Iterable[int]) -> Iterator[Versions]:
        import importlib.metadata
        import importlib.util
        import platform
        import socket

        import pyspark

        def there(name: str) -> str | None:
            if importlib.util.find_spec(name) is None:
                return None
            try:
                return importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                return "unknown"

        yield {
            "host": socket.gethostname(),
            "python": ".".join(platform.python_version_tuple()[:2]),
            "pyspark": pyspark.__version__,
            "pyarrow": there("pyarrow"),
            "pandas": there("pandas"),
        }

    return context.parallelize(range(tasks), tasks).mapPartitions(look).collect()


def _versions_here() -> Versions:
    import pyspark

    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "pyspark": pyspark.__version__,
    }
