"""A process function packed for Spark's Python workers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from headgate.process.codecs import Codec, DictOf, ListOf
from headgate.process.records import Record, Struct
from headgate.process.wire import Wire


def task_function(wire: Wire) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that a task runs over its Arrow batches."""
    payload, path = _packed(wire), [p for p in sys.path if p]

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import sys

        # a local worker finds the modules that the driver has found
        sys.path += [p for p in path if p not in sys.path]
        from headgate.process.worker import run_task

        return run_task(payload, batches)

    return run


def _packed(wire: Wire) -> bytes:
    """The wire's bytes, with the user's own modules in them: a worker may not have their files."""
    modules = [m for m in _modules(wire) if _is_own(m)]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        packed: bytes = cloudpickle.dumps(wire)  # type: ignore[no-untyped-call]
        return packed
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _modules(wire: Wire) -> Iterator[ModuleType]:
    kinds: list[type] = list(type(wire.function).__mro__)
    codecs: list[Codec] = [*wire.rows, *[s.value for s in wire.shape.states]]
    codecs += [s.value for s in wire.shape.sides]
    codecs += [wire.shape.output] if wire.shape.output else []
    for codec in codecs:
        kinds += _dataclasses(codec)
    for name in dict.fromkeys(kind.__module__ for kind in kinds):
        if name in sys.modules:
            yield sys.modules[name]


def _dataclasses(codec: Codec) -> Iterator[type]:
    if isinstance(codec, Record):
        yield codec.kind
    if isinstance(codec, Struct):
        for _, part in codec.parts:
            yield from _dataclasses(part)
    elif isinstance(codec, ListOf):
        yield from _dataclasses(codec.item)
    elif isinstance(codec, DictOf):
        yield from _dataclasses(codec.value)


def _is_own(module: ModuleType) -> bool:
    """Whether a module is a file of the user's, not an installed one or a part of Python."""
    name = module.__name__.partition(".")[0]
    if name in sys.stdlib_module_names or name in ("headgate", "pyspark", "__main__"):
        return False
    file = getattr(module, "__file__", None) or ""
    return bool(file) and "site-packages" not in file and "dist-packages" not in file
