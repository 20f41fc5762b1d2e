"""Finds the examples in docstrings, and runs those of a class in one namespace."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from itertools import groupby, pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row
from pyspark.sql import functions as F

import headgate
from headgate.testing import Deleted, JobDriver, ProcessDriver

GIVEN = {
    "__name__": "__main__",  # where a user's own classes are
    "Deleted": Deleted,
    "F": F,
    "JobDriver": JobDriver,
    "ProcessDriver": ProcessDriver,
    "Row": Row,
    "datetime": datetime,
    "hg": headgate,
    "np": np,
    "pa": pa,
    "pc": pc,
    "timedelta": timedelta,
}
"""What an example need not import."""
MODULES = sorted(m.name for m in pkgutil.walk_packages(headgate.__path__, "headgate."))


@cache
def examples_of(name: str) -> tuple[doctest.DocTest, ...]:
    """The docstrings of a module that have examples: a class's before those of its methods."""
    module = importlib.import_module(name)
    found = [*doctest.DocTestFinder().find(module), *_of_aliases(module)]
    run = [t for t in found if any(not e.options.get(doctest.SKIP) for e in t.examples)]
    return tuple(sorted(run, key=lambda test: _line(module, test)))


def _line(module: ModuleType, test: doctest.DocTest) -> int:
    """Where a docstring stands; doctest does not know it of properties."""
    if test.lineno is not None:
        return test.lineno
    owner, _, name = test.name.removeprefix(f"{module.__name__}.").partition(".")
    made = vars(vars(module)[owner]).get(name) if name else None
    return made.fget.__code__.co_firstlineno if isinstance(made, property) and made.fget else 0


def _of_aliases(module: ModuleType) -> Iterator[doctest.DocTest]:
    """The strings below assignments, which document what cannot have a docstring."""
    body = ast.parse(inspect.getsource(module)).body
    for assigned, text in pairwise(body):
        match assigned, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(written))),
            ):
                yield doctest.DocTestParser().get_doctest(
                    inspect.cleandoc(written),
                    vars(module).copy(),
                    f"{module.__name__}.{name}",
                    module.__file__,
                    text.lineno - 1,
                )


def names_with_examples() -> set[str]:
    """All that has an example, as `module.Class.method`."""
    return {test.name for module in MODULES for test in examples_of(module)}


def failures_in(name: str, given: Callable[[], Mapping[str, Any]] = dict) -> int:
    """Run a module's examples with the names that are given; how many do not hold.

    Examples of methods go on where the class's own ended, in the order of the file.
    """
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)

    def owner(test: doctest.DocTest) -> str:
        return test.name.removeprefix(f"{name}.").partition(".")[0]

    for _, tests in groupby(sorted(examples_of(name), key=owner), key=owner):
        names = {**vars(importlib.import_module(name)), **GIVEN, **given()}
        for test in tests:
            test.globs = names
            runner.run(test, clear_globs=False)
    return runner.failures
