"""Which Spark and Scala this installation runs, read from its jars: no JVM is started."""

from __future__ import annotations

import os
import re
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from headgate.base.errors import HeadgateError

KERNEL_JAR = Path(__file__).resolve().parents[1] / "jars" / "headgate-kernel.jar"

# The manifest's entries that say what the kernel was built from (kernel/build.py writes them).
SPARK_ENTRY, SCALA_ENTRY, SOURCES_ENTRY = (
    "Headgate-Spark-Version",
    "Headgate-Scala-Version",
    "Headgate-Sources",
)

_MANIFEST = "META-INF/MANIFEST.MF"


@dataclass(frozen=True)
class SparkJars:
    """A folder of Spark's jars and the versions that their names give."""

    folder: Path
    spark: str
    scala: str

    @property
    def scala_binary(self) -> str:
        """Like "2.13" for "2.13.18": jars fit each other when this part is the same."""
        return ".".join(self.scala.split(".")[:2])


@dataclass(frozen=True)
class KernelJar:
    """The compiled kernel and what it was built for."""

    path: Path
    spark: str
    scala: str
    sources: str


def find_spark_jars(*, honour_spark_home: bool = True) -> SparkJars:
    """Spark's jars as pyspark will find them: SPARK_HOME if it is set, else pyspark's own.

    >>> find_spark_jars().scala_binary
    '2.13'
    """
    home = os.environ.get("SPARK_HOME") if honour_spark_home else None
    if home:
        return _read(Path(home) / "jars", remedy="unset SPARK_HOME to use pyspark's own Spark")
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise HeadgateError(
            "pyspark is not installed", code="INSTALLATION", remedy="pip install headgate brings it"
        )
    folder = Path(spec.origin).parent
    if not folder.is_dir():
        # YARN puts a pyspark.zip before the installed one, and that has no jars
        with suppress(PackageNotFoundError):
            folder = Path(str(distribution("pyspark").locate_file("pyspark")))
    return _read(folder / "jars", remedy="install pyspark again")


def read_kernel_jar(path: Path = KERNEL_JAR) -> KernelJar | None:
    """What a kernel jar says it was built for; None if there is no readable jar of ours."""
    try:
        with zipfile.ZipFile(path) as jar:
            text = jar.read(_MANIFEST).decode("utf-8")
    except (OSError, KeyError, zipfile.BadZipFile, UnicodeDecodeError):
        return None
    entries = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if not all(name in entries for name in (SPARK_ENTRY, SCALA_ENTRY, SOURCES_ENTRY)):
        return None
    return KernelJar(path, entries[SPARK_ENTRY], entries[SCALA_ENTRY], entries[SOURCES_ENTRY])


def _read(folder: Path, *, remedy: str) -> SparkJars:
    names = [path.name for path in folder.glob("*.jar")]
    spark = _version(names, r"spark-core_[\d.]+-(.+)\.jar")
    scala = _version(names, r"scala-library-(.+)\.jar")
    if spark is None or scala is None:
        raise HeadgateError(f"there is no Spark in {folder}", code="INSTALLATION", remedy=remedy)
    return SparkJars(folder, spark, scala)


def _version(names: list[str], pattern: str) -> str | None:
    return next((match.group(1) for name in names if (match := re.fullmatch(pattern, name))), None)
