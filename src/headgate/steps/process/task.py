"""A process function packed for Spark's Python workers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from headgate.base.errors import GraphError
from headgate.base.packing import packed, travels
from headgate.steps.process.function import Process
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
        where = next((a for a, v in vars(function).items() if not travels(v)), None)
        raise GraphError(
            f"{name}{f'.{where}' if where else ''} cannot be sent to the workers: {error}",
            step=step,
            remedy="make it in the method `open`, which each task calls before its first row",
            location=class_location(type(function)),
        ) from error
