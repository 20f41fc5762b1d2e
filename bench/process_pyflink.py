"""Owns running the process bench in PyFlink, which has an environment of its own (about 900 MB).

Its packages and Headgate's do not go together: it wants an older Arrow, protobuf and py4j.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench.java import java
from bench.process import EngineFailed, Finished, run_measured
from bench.process_data import files_in_order

_HERE = Path(__file__).resolve().parent
PACKAGE = "apache-flink==2.3.0"
OUTPUT = "totals"

_OPTIONS = {
    "parallelism.default": "2",
    "execution.checkpointing.interval": "5 s",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.storage": "filesystem",
    "restart-strategy.type": "none",
    "state.backend.type": "rocksdb",
    "state.backend.rocksdb.use-bloom-filter": "true",
    "taskmanager.memory.managed.size": "2 gb",
    "taskmanager.memory.network.min": "256 mb",
    "taskmanager.memory.network.max": "256 mb",
    # Its own Python caches state between checkpoints; by default a thousand values.
    "python.state.cache-size": "100000",
    "python.fn-execution.bundle.size": "100000",
}


def run_pyflink(
    mode: str, data_dir: Path, out_dir: Path, venv: Path
) -> tuple[Finished, dict[str, float]]:
    """Run it in `thread` or `process` mode; what it used, and its phases in seconds."""
    python = _environment(venv)
    shutil.rmtree(out_dir, ignore_errors=True)
    work = out_dir / "_work"
    _one_file_a_partition(data_dir, work / "input")
    options = {
        **_OPTIONS,
        "python.execution-mode": mode,
        "python.executable": str(python),
        "python.client.executable": str(python),
        "execution.checkpointing.dir": (work / "checkpoints").as_uri(),
        "io.tmp.dirs": str(work / "tmp"),
    }
    (work / "tmp").mkdir()
    paths = [str(work / name) for name in ("input", "output", "opened")]
    arguments = [json.dumps(options), *paths, str(time.time())]
    ran = run_measured(
        [str(python), str(_HERE / "process_pyflink_job.py"), *arguments],
        log=work / "stderr.log",
        env={
            "JAVA_HOME": str(Path(java()).resolve().parent.parent),
            "JVM_ARGS": "-Xmx4g",
            # the Python inside the JVM of thread mode does not know that it is in an environment
            "PYTHONPATH": str(next(venv.glob("lib/python*/site-packages"))),
        },
    )
    found = next(line for line in reversed(ran.lines) if line.startswith("RESULT "))
    phases: dict[str, float] = json.loads(found.removeprefix("RESULT "))
    _finished_files(work / "output", out_dir / OUTPUT)
    for name in ("checkpoints", "tmp", "input"):
        shutil.rmtree(work / name, ignore_errors=True)
    return ran, phases


def _environment(venv: Path) -> Path:
    """The Python of an environment with PyFlink in it, made once."""
    python = venv / "bin" / "python"
    if not (venv / ".installed").exists():
        print(f"installing {PACKAGE} into {venv} (once)", file=sys.stderr, flush=True)
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        made = subprocess.run([*pip, PACKAGE], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise EngineFailed(
                f"{PACKAGE} cannot be installed for Python {sys.version.split()[0]}; leave PyFlink "
                f"out with --engines headgate,tws\n{made.stderr[-2000:]}"
            )
        (venv / ".installed").touch()
    return python


def _one_file_a_partition(data_dir: Path, target: Path) -> None:
    """A file is read by one reader from its beginning: so the events of a key stay in order."""
    target.mkdir(parents=True)
    for number, files in enumerate(files_in_order(data_dir)):
        with open(target / f"{number}.jsonl", "wb") as out:
            for file in files:
                with open(file, "rb") as part:
                    shutil.copyfileobj(part, out)


def _finished_files(written: Path, target: Path) -> None:
    """The sink's files; it leaves names of files that are not committed beginning with a point."""
    target.mkdir(parents=True)
    for number, file in enumerate(sorted(written.rglob("part-*"))):
        os.rename(file, target / f"part-{number}.jsonl")
