"""What `import headgate as hg` shows: every name is there, completion finds it, it has an example.

That the examples hold is in test_docstrings.py.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import headgate as hg
from headgate import testing
from tests.docstring_examples import MODULES, names_with_examples

ALIASES = {"Duration", "Expr", "Out", "Schema", "StartPosition"}
"""Types that are only named: they have no docstring of their own but the text below their line."""
WITHOUT = {"CrashPoint", "assert_crash_safe"}
"""A list of names, and a function whose shortest example runs a job nine times: it has tests."""
WITH_METHODS = (
    hg.Job,
    hg.JobDef,
    hg.Keyed,
    hg.Lookup,
    hg.Processed,
    hg.RunHandle,
    hg.SourceStream,
    hg.Stream,
    hg.Table,
    hg.Windowed,
    testing.JobDriver,
    testing.ProcessDriver,
)


def test_every_name_is_there_and_listed() -> None:
    for name in hg.__all__:
        assert getattr(hg, name) is not None
    assert set(hg.__all__) <= set(dir(hg)) and "__version__" in dir(hg)
    assert list(hg.__all__) == sorted(hg.__all__)


def test_errors_are_caught_by_their_root() -> None:
    errors = [name for name in hg.__all__ if name.endswith("Error")]
    assert "UsageError" in errors and "RefusedError" in errors
    assert all(issubclass(getattr(hg, name), hg.HeadgateError) for name in errors)


def test_every_error_for_users_is_exported() -> None:
    found = {
        made
        for module in MODULES
        for made in vars(importlib.import_module(module)).values()
        if isinstance(made, type) and issubclass(made, hg.HeadgateError)
    }
    assert len(found) > 10
    assert {made for made in found if getattr(hg, made.__name__, None) is not made} == set()


def test_every_public_name_has_an_example_that_is_run() -> None:
    there = names_with_examples()
    of_aliases = {name.rpartition(".")[2] for name in there if name.rpartition(".")[2] in ALIASES}
    assert of_aliases == ALIASES
    wanted = {_full(getattr(hg, name)) for name in set(hg.__all__) - ALIASES}
    wanted |= {_full(getattr(testing, name)) for name in set(testing.__all__) - WITHOUT}
    assert sorted(wanted - there) == []


def test_every_public_method_has_an_example_that_is_run() -> None:
    wanted = {name for kind in WITH_METHODS for name in _methods(kind)}
    assert len(wanted) > 40
    assert sorted(wanted - names_with_examples()) == []


def _full(made: type) -> str:
    return f"{made.__module__}.{made.__qualname__}"


def _methods(kind: type) -> Iterator[str]:
    for name, made in vars(kind).items():
        if not name.startswith("_") and (inspect.isroutine(made) or isinstance(made, property)):
            yield f"{_full(kind)}.{name}"
