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
    for name in _GONE_AFTERWARDS:
        shutil.rmtree(work / name, ignore_errors=True)
    return ran, phases


def measure(jobs: Mapping[str, Job]) -> None:
    """Run, in the process that is measured, the job that the arguments name."""
    from headgate.runtime.session import get_session

    name, data_dir, out_dir, batch, began = sys.argv[1:]
    local = Path(out_dir) / "_work" / "local"
    spark = get_session(master="local[2]", conf={**_CONF, "spark.local.dir": str(local)})
    print(STARTED, flush=True)
    started = time.time()
    jobs[name](spark, Path(data_dir), Path(out_dir), int(batch))
    done = time.time()
    spark.stop()
    phases = {"start": started - float(began), "events": done - started}
    print("RESULT " + json.dumps(phases), flush=True)
