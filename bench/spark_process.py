"""Owns jobs of Headgate and of Spark alone that are measured in a process of their own."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.process import STARTED, Finished, run_measured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Job = Callable[["SparkSession", Path, Path, int], None]
"""Gets the session, the folder of the data, that of the output, and the records of a batch."""
_CONF = {"spark.driver.memory": "4g"}
_GONE_AFTERWARDS = ("home", "checkpoint", "local")
AGAIN = "again"
"""The folder, in that of a run's output, of a second run in the same session."""


def new_folder(out_dir: Path) -> Path:
    """The work folder of a run, whose output is empty."""
    shutil.rmtree(out_dir, ignore_errors=True)
    work = out_dir / "_work"
    work.mkdir(parents=True)
    return work


def run_spark_process(
    module: str, job: str, data_dir: Path, out_dir: Path, batch: int
) -> tuple[Finished, dict[str, float]]:
    """Run a job of a module, which calls `measure`; what it used, and its phases in seconds."""
    work = out_dir / "_work"
    arguments = [job, str(data_dir), str(out_dir), str(batch), str(time.time())]
    ran = run_measured(
        [sys.executable, "-m", module, *arguments],
        log=work / "stderr.log",
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable},
    )
    found = next(line for line in reversed(ran.lines) if line.startswith("RESULT "))
    phases: dict[str, float] = json.loads(found.removeprefix("RESULT "))
    for folder in (work, out_dir / AGAIN / "_work"):
        for name in _GONE_AFTERWARDS:
            shutil.rmtree(folder / name, ignore_errors=True)
    return ran, phases


def measure(jobs: Mapping[str, Job], *, again: bool = False) -> None:
    """Run, in the process that is measured, the job that the arguments name.

    With `again` it runs twice, each time with a new home or checkpoint: the second run shows the
    engine without Java's slow first minute. The CPU time is then that of the second run.
    """
    from headgate.runtime.session import get_session

    name, data_dir, out_dir, batch, began = sys.argv[1:]
    local = Path(out_dir) / "_work" / "local"
    spark = get_session(master="local[2]", conf={**_CONF, "spark.local.dir": str(local)})
    phases = {"start": time.time() - float(began)}
    for phase, out in {"events": Path(out_dir), AGAIN: Path(out_dir) / AGAIN}.items():
        if phase == AGAIN and not again:
            break
        print(STARTED, flush=True)
        started = time.time()
        jobs[name](spark, Path(data_dir), out, int(batch))
        phases[phase] = time.time() - started
    spark.stop()
    print("RESULT " + json.dumps(phases), flush=True)
