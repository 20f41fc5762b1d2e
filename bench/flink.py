"""Owns running the Flink jobs of bench/flink, each in a JVM of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.data import TABLES, topic_records
from bench.java import java, javac
from bench.process import Finished, progress_printer, run_measured
from bench.result import Result, result
from headgate.jvm.jars import fetch

_HERE = Path(__file__).resolve().parent
LOCK = _HERE / "flink.lock"
SOURCES = sorted((_HERE / "flink").glob("*.java"))

# Flink 2 on Java 17 reaches into these; its own distribution opens them the same way.
_OPENS = (
    "java.io",
    "java.lang",
    "java.lang.reflect",
    "java.net",
    "java.nio",
    "java.text",
    "java.time",
    "java.util",
    "java.util.concurrent",
    "sun.nio.ch",
    "sun.security.util",
)
# The parallel collector took 5 to 10% less CPU here than G1, Flink's default.
_JVM = ["-Xms4g", "-Xmx4g", "-XX:MaxDirectMemorySize=1g", "-XX:+UseParallelGC"]
_JVM += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENS]
_JVM += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
_JVM += ["-Dorg.slf4j.simpleLogger.log.org.apache.flink.metrics=error"]

_OPTIONS = {
    "parallelism.default": "2",
    "execution.runtime-mode": "STREAMING",
    "execution.checkpointing.interval": "5 s",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.storage": "filesystem",
    "restart-strategy.type": "none",
    "pipeline.generic-types": "false",
    "state.backend.type": "rocksdb",
    "state.backend.rocksdb.use-bloom-filter": "true",
    "taskmanager.memory.managed.size": "2 gb",
    "taskmanager.memory.network.min": "256 mb",
    "taskmanager.memory.network.max": "256 mb",
}


def run_flink(data_dir: Path, out_dir: Path, object_reuse: bool) -> Result:
    """Run the two lookups in Java Flink; its rows are in out_dir when it returns.

    >>> run_flink(data, out, True).orders_per_second  # doctest: +SKIP
    110000.0
    """
    name = flink_name(object_reuse)
    orders = topic_records(data_dir / "orders")
    options = {
        "orders": str(orders),
        "table-rows": str(sum(topic_records(data_dir / table) for table in TABLES)),
    }
    on_line = progress_printer(name, orders)
    ran, phases = run_job("LookupJob", data_dir, out_dir, object_reuse, options, on_line)
    return result(name, orders=orders, ran=ran, phases=phases)


def flink_name(object_reuse: bool) -> str:
    """What Flink is called in the results."""
    return "Java Flink, object reuse" if object_reuse else "Java Flink"


def run_job(
    job: str,
    data_dir: Path,
    out_dir: Path,
    object_reuse: bool,
    own: Mapping[str, str],
    on_line: Callable[[str], None],
) -> tuple[Finished, dict[str, float]]:
    """Run one of the jobs with options of its own; what it used, and its phases in seconds."""
    work = out_dir / "_flink"
    shutil.rmtree(out_dir, ignore_errors=True)
    work.mkdir(parents=True)
    options = {
        "pipeline.object-reuse": str(object_reuse).lower(),
        "execution.checkpointing.dir": (work / "checkpoints").resolve().as_uri(),
        "io.tmp.dirs": str(work / "tmp"),
        "data": str(data_dir),
        "out": str(out_dir),
        **own,
    }
    command = job_command(job, work / "classes", options)
    ran = run_measured(command, log=work / "stderr.log", on_line=on_line)
    phases = _phases(ran.lines)
    for folder in ("checkpoints", "tmp"):
        shutil.rmtree(work / folder, ignore_errors=True)
    return ran, phases


def job_command(job: str, classes: Path, own: Mapping[str, str]) -> list[str]:
    """Compile the jobs; how one of them is started, with options beside the common ones."""
    jars = fetch(LOCK)
    classpath = _classpath([compile_job(jars, classes), *jars])
    options = {**_OPTIONS, **own}
    words = [f"--{key}={value}" for key, value in options.items()]
    return [java(), *_JVM, "-cp", classpath, f"bench.{job}", *words]


def compile_job(jars: list[Path], classes: Path) -> Path:
    """Compile the jobs with javac, or with the locked Eclipse compiler where there is no JDK."""
    classes.mkdir(parents=True, exist_ok=True)
    compiler = javac()
    if compiler is not None:
        command = [compiler, "-nowarn", "--release", "17"]
    else:
        ecj = next(jar for jar in jars if jar.name.startswith("org.eclipse.jdt.ecj"))
        command = [java(), "-jar", str(ecj), "-nowarn", "-17"]
    command += ["-d", str(classes), "-cp", _classpath(jars), *map(str, SOURCES)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(f"the Flink job did not compile:\n{ran.stdout}{ran.stderr}")
    return classes


def _classpath(entries: list[Path]) -> str:
    return ":".join(str(entry) for entry in entries)


def _phases(lines: list[str]) -> dict[str, float]:
    found = next((line for line in reversed(lines) if line.startswith("RESULT ")), None)
    if found is None:
        raise RuntimeError("the Flink job ended without a result")
    millis: dict[str, int] = json.loads(found.removeprefix("RESULT "))
    return {phase: value / 1000 for phase, value in millis.items()}


if __name__ == "__main__":
    print(run_flink(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] == ["reuse"]))
