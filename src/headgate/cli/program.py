"""A job's file as a program of its own: for plain spark-submit, and for `python store.py`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from headgate.api.job import JobDef
from headgate.base.errors import UsageError
from headgate.cli.main import main as command_line


def main(job: JobDef, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a job as `headgate run` does, with the options of the program's own command line.

    With `if __name__ == "__main__": hg.main(store)` at the end of the job's file,
    `spark-submit store.py --home s3://bucket/home` runs it on the master that spark-submit names.
    The process ends with the exit code of `headgate run`.

    >>> hg.main("store")
    Traceback (most recent call last):
    headgate.base.errors.UsageError: hg.main takes a job, got 'store': give it ...
    """
    if not isinstance(job, JobDef):
        raise UsageError(
            "hg.main takes a job", got=repr(job), remedy="give it what @hg.job has made"
        )
    words = sys.argv[1:] if arguments is None else arguments
    command_line(["run", f"{job.function.__code__.co_filename}:{job.name}", *words])
    raise AssertionError("the command line ends the process")
