"""The user's objects as bytes for Spark's Python workers, with the modules that they come from."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from pyspark import cloudpickle


def packed(thing: object) -> bytes:
    """Its bytes, with what it uses of the user's modules: a worker may not have their files."""
    # of all modules: a class that came with one of them and was imported by another would be two
    own = [m for name, m in list(sys.modules.items()) if _is_own(name, m)]
    try:
        return _bytes_with(own, thing)
    except Exception:
        # a module with something in it that cannot be sent has to be imported where it is used
        return _bytes_with([m for m in own if travels(m, [m])], thing)


def travels(thing: object, own: Sequence[ModuleType] = ()) -> bool:
    """Whether it can be sent to the workers, with these modules in it."""
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
