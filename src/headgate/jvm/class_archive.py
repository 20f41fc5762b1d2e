"""An archive of the classes that Spark loads, in the user's cache: with it a JVM starts in half
the time.

There is one for a Java and the jars of a Spark. It is made once, by a process of its own that
nobody waits for. A JVM that does not fit it starts without, and says nothing.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from headgate.base.errors import HeadgateError, UsageError
from headgate.jvm.java import JavaHome, cache_folder
from headgate.jvm.spark_jars import SparkJars, find_spark_jars

VARIABLE = "HEADGATE_CLASS_ARCHIVE"
QUIET = "-Xlog:cds*=off"
_KEPT = 3
"""So many archives stay, the last used ones: each is 130 MB."""
_PATIENCE_SECONDS = 86_400.0
_LAYOUT = "1"


class Use(StrEnum):
    """What may be done with an archive: make one if there is none, use it only, or neither."""

    AUTO = "auto"
    USE = "use"
    OFF = "off"


def use() -> Use:
    """What the environment allows."""
    given = os.environ.get(VARIABLE, "") or Use.AUTO
    if given not in tuple(Use):
        raise UsageError(
            f"{VARIABLE} must be one of {', '.join(Use)}", got=repr(given), remedy="unset it"
        )
    return Use(given)


def archive_path(java: JavaHome, jars: SparkJars) -> Path:
    """Where the archive for this Java and these jars is, or would be."""
    words = [_LAYOUT, str(java.path), java.version, str(jars.folder)]
    # the JVM itself refuses an archive whose jars have another size or time
    with suppress(OSError):
        words.append(_stamp(java.path / "lib" / "modules"))
    words += sorted(f"{jar.name} {_stamp(jar)}" for jar in jars.folder.glob("*.jar"))
    name = hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
    return cache_folder() / "classes" / f"{name}.jsa"


def java_options(java: JavaHome) -> list[str]:
    """What a JVM is started with to use the archive: nothing if there is none."""
    if use() is Use.OFF:
        return []
    try:
        path = archive_path(java, find_spark_jars())
        if not path.exists():
            return []
        with suppress(OSError):  # whose cache may only be read
            os.utime(path)
    except (OSError, HeadgateError):
        return []
    return [f"-XX:SharedArchiveFile={path}", QUIET]


def make_later(java: JavaHome, module: str) -> None:
    """Let a process of its own make the archive, unless it is there or cannot be; never raises.

    `module` runs a job, see `headgate.testing.training`. Not where CI is set: nothing stays there.
    """
    try:
        if use() is not Use.AUTO or os.environ.get("CI"):
            return
        path = archive_path(java, find_spark_jars())
        if path.exists() or _failed_lately(path):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path.parent, os.W_OK):
            return
        subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # not in the user's folder, which they may want to delete; nor stopped by their Ctrl-C
            cwd=path.parent,
            start_new_session=True,
        )
    except (OSError, HeadgateError):
        return


def keep(new: Path, path: Path) -> bool:
    """Give a new archive its name, and drop those that were not used for longest."""
    if not new.exists():
        _failed(path).touch()
        return False
    new.replace(path)
    _failed(path).unlink(missing_ok=True)
    found = sorted(path.parent.glob("*.jsa"), key=lambda each: each.stat().st_mtime, reverse=True)
    for old in found[_KEPT:]:
        old.unlink(missing_ok=True)
    return True


def _failed(path: Path) -> Path:
    """A note that no archive was made, as with a Java that cannot."""
    return path.with_suffix(".failed")


def _failed_lately(path: Path) -> bool:
    try:
        return time.time() - _failed(path).stat().st_mtime < _PATIENCE_SECONDS
    except FileNotFoundError:
        return False


def _stamp(path: Path) -> str:
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns}"
