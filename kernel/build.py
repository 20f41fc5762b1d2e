"""Builds the kernel jar with the Scala compiler that pyspark ships: Python and Java suffice.

`python kernel/build.py` builds if the sources, Spark or the options have changed, with `--force`
in any case; `--find-java` only says which Java would be used, with exit code 1 if there is none.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import os
import subprocess
import sys
import tempfile
import time
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "kernel" / "src"
PACKAGE = ROOT / "src" / "headgate"
JAR = PACKAGE / "jars" / "headgate-kernel.jar"
LOCKS = PACKAGE / "jvm" / "locks"
CLIENTS = (
    LOCKS / "kafka-connector-4.2.0.lock",
    LOCKS / "pulsar-client-4.2.4.lock",
    LOCKS / "hadoop-aws-3.5.0.lock",
    LOCKS / "postgresql-42.7.14.lock",
    LOCKS / "mariadb-java-client-3.5.11.lock",
    LOCKS / "delta-spark-4.4.0.lock",
)

OPTIONS = ("-deprecation", "-feature", "-unchecked", "-encoding", "UTF-8")
_JAVA = (
    "-Xss8m",  # the compiler recurses deeply in pattern matches over Catalyst trees
    "-XX:TieredStopAtLevel=1",  # it lives for seconds: 20 CPU seconds instead of 48
    "-XX:+UseSerialGC",
)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time a zip can hold: equal sources give equal jars


class BuildError(Exception):
    """The kernel could not be built; the text says why and what to do."""


@contextlib.contextmanager
def _headgate_modules() -> Iterator[tuple[Any, Any, Any]]:
    """headgate.jvm.java, .spark_jars and .jars, without running a package's __init__.py.

    A build environment has pyspark and nothing else of what the package imports.
    """
    packages = ("headgate", "headgate.base", "headgate.jvm")
    modules = ("headgate.jvm.java", "headgate.jvm.spark_jars", "headgate.jvm.jars")
    own = ("headgate.base.errors", "headgate.base.locks", "headgate.base.secrets")
    names = (*packages, *modules, *own)
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    for package in packages:
        bare = types.ModuleType(package)
        bare.__path__ = [str(PACKAGE.parent.joinpath(*package.split(".")))]
        sys.modules[package] = bare
    try:
        java, spark_jars, jars = (importlib.import_module(name) for name in modules)
        yield java, spark_jars, jars
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(before)


def find_java() -> tuple[Path, str]:
    """The Java program and a sentence about it; BuildError if there is none."""
    with _headgate_modules() as (java, _, _):
        try:
            found = java.find_java()
        except Exception as error:
            raise BuildError(str(error)) from error
        return found.executable, f"Java {found.version} from {found.origin.value}"


def ensure_kernel(*, force: bool = False) -> Path:
    """Build the jar unless it is up to date; returns its path."""
    sources = sorted(SOURCES.rglob("*.scala"))
    if not sources:
        raise BuildError(f"there are no Scala sources in {SOURCES}")
    with _headgate_modules() as (_, spark_jars, _):
        try:
            # The jar is built for the pyspark it ships with, whatever SPARK_HOME says.
            spark = spark_jars.find_spark_jars(honour_spark_home=False)
        except Exception as error:
            raise BuildError(str(error)) from error
        stamp = _stamp(sources, spark)
        built = spark_jars.read_kernel_jar(JAR)
        entries = {
            spark_jars.SPARK_ENTRY: spark.spark,
            spark_jars.SCALA_ENTRY: spark.scala,
            spark_jars.SOURCES_ENTRY: stamp,
        }
    if built and built.sources == stamp and not force:
        _say(f"kernel: up to date ({_shown(JAR)}, Spark {spark.spark})")
        return JAR
    java, sentence = find_java()
    files = "file" if len(sources) == 1 else "files"
    _say(
        f"kernel: compiling {len(sources)} Scala {files} for Spark {spark.spark} "
        f"(Scala {spark.scala}, {sentence})"
    )
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headgate-kernel-") as scratch:
        classes = Path(scratch) / "classes"
        classes.mkdir()
        _compile(java, spark.folder, client_jars(), sources, classes)
        _pack(classes, entries)
    _say(f"kernel: {_shown(JAR)} built in {time.monotonic() - began:.0f} s")
    return JAR


def client_jars() -> list[Path]:
    """The clients that parts of the kernel are compiled against."""
    with _headgate_modules() as (_, _, jars):
        try:
            return [jar for lock in CLIENTS for jar in jars.fetch(lock)]
        except Exception as error:
            raise BuildError(str(error)) from error


def _stamp(sources: list[Path], spark: Any) -> str:
    """A short hash of all that decides what is in the jar."""
    digest = hashlib.sha256(repr((spark.spark, spark.scala, OPTIONS)).encode())
    for path in [*sources, *_resources(), *CLIENTS, Path(__file__)]:
        digest.update(f"\0{path.relative_to(ROOT).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]  # a manifest's line has 72 bytes


def _resources() -> list[Path]:
    """Files beside the Scala sources that go into the jar as they are."""
    return sorted(p for p in SOURCES.rglob("*") if p.is_file() and p.suffix != ".scala")


def _compile(
    java: Path, jars: Path, clients: list[Path], sources: list[Path], classes: Path
) -> None:
    arguments = classes.parent / "arguments"
    quoted = (f'"{path}"' for path in sources)
    arguments.write_text("\n".join([*OPTIONS, "-d", f'"{classes}"', *quoted]), encoding="utf-8")
    path = os.pathsep.join([f"{jars}{os.sep}*", *map(str, clients)])
    command = [str(java), *_JAVA, "-cp", path, "scala.tools.nsc.Main"]
    ran = subprocess.run(
        [*command, "-usejavacp", f"@{arguments}"],
        stdout=sys.stderr.fileno() if _has_descriptor(sys.stderr) else None,
        check=False,
    )
    if ran.returncode != 0:
        raise BuildError(f"the Scala compiler stopped with exit code {ran.returncode} (see above)")


def _pack(classes: Path, entries: dict[str, str]) -> None:
    """Write the jar aside and rename it: whoever has the old one open keeps it."""
    manifest = "".join(f"{name}: {value}\r\n" for name, value in entries.items())
    files = {p.relative_to(classes).as_posix(): p for p in classes.rglob("*") if p.is_file()}
    files |= {p.relative_to(SOURCES).as_posix(): p for p in _resources()}
    JAR.parent.mkdir(parents=True, exist_ok=True)
    descriptor, aside = tempfile.mkstemp(prefix=".new-", suffix=".jar", dir=JAR.parent)
    try:
        with os.fdopen(descriptor, "wb") as out, zipfile.ZipFile(out, "w") as jar:
            _add(jar, "META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\n{manifest}\r\n".encode())
            for name in sorted(files):
                _add(jar, name, files[name].read_bytes())
        Path(aside).chmod(0o644)
        Path(aside).replace(JAR)
    finally:
        Path(aside).unlink(missing_ok=True)


def _add(jar: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = 0o644 << 16
    jar.writestr(info, content, zipfile.ZIP_DEFLATED)


def _shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _has_descriptor(stream: Any) -> bool:
    try:
        return bool(stream.fileno() >= 0)
    except (AttributeError, OSError, ValueError):
        return False


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description="Builds Headgate's kernel jar.")
    parser.add_argument("--force", action="store_true", help="build even if it is up to date")
    parser.add_argument("--find-java", action="store_true", help="only say which Java is used")
    options = parser.parse_args()
    try:
        if options.find_java:
            _say(find_java()[1])
        else:
            ensure_kernel(force=options.force)
    except BuildError as error:
        # Who only asks for Java (the Makefile) has a plan for the case that there is none.
        _say("no Java that Spark can use" if options.find_java else f"kernel: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
