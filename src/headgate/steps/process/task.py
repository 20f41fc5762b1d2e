"""A process function packed for Spark's Python workers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from headgate.base.errors import GraphError
from headgate.steps.process.declare import Process
from headgate.steps.process.shape import class_location
from headgate.steps.process.wire import Wire


def task_function(wire: Wire) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that a task runs over its Arrow batches."""
    payload, path = packed(wire), [p for p in sys.path if p]

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import sys

        # a local worker finds the modules that the driver has found
        sys.path += [p for p in path if p not in sys.path]
        from headgate.steps.process.worker import run_task

        return run_task(payload, batches)

    return run


def check_travels(function: Process, step: str) -> None:
    """Refuse a function that cannot be sent to the workers."""
    try:
        packed(function)
    except Exception as error:
        name = type(function).__name__
        where = next((a for a, v in vars(function).items() if not _travels(v)), None)
        raise GraphError(
            f"{name}{f'.{where}' if where else ''} cannot be sent to the workers: {error}",
            step=step,
            remedy="make it in the method `open`, which each task calls before its first row",
            location=class_location(type(function)),
        ) from error


def packed(thing: object) -> bytes:
    """Its bytes, with what it uses of the user's modules: a worker may not have their files."""
    # of all modules: a class that came with one of them and was imported by another would be two
    own = [m for name, m in list(sys.modules.items()) if _is_own(name, m)]
    try:
        return _bytes_with(own, thing)
    except Exception:
        # a module with something in it that cannot be sent has to be imported where it is used
        return _bytes_with([m for m in own if _travels(m, [m])], thing)


def _travels(thing: object, own: Sequence[ModuleType] = ()) -> bool:
    try:
        return bool(_bytes_with(own, thing))
    except Exception:
        return False


def _bytes_with(modules: Sequence[ModuleType], thing: object) -> bytes:
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        made: bytes = cloudpickle.dumps(thing)  # type: ignore[no-untyped-call]
        return made
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _is_own(name: str, module: ModuleType) -> bool:
    """Whether a module is a file of the user's, not an installed one or a part of Python."""
    if getattr(module, "__name__", None) != name:
        return False
    first = name.partition(".")[0]
    if first in sys.stdlib_module_names or first in ("headgate", "pyspark", "__main__"):
        return False
    file = getattr(module, "__file__", None) or ""
    return file.endswith(".py") and "site-packages" not in file and "dist-packages" not in file
