"""The proof that executors see the home: before the first batch, and of each that comes later."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from headgate.base.coded import find_coded
from headgate.base.errors import HeadgateError, RefusedError
from headgate.failures import explain
from headgate.home.layout import JobHome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDER = "probe"
_WAIT_SECONDS = 0.1
_LATER_SECONDS = 3.0


class HomeUnseenError(RefusedError):
    """An executor sees a different disk at the home's path, so the state it writes would be lost.

    >>> error = HomeUnseenError(
    ...     'HEADGATE {"code": "HOME_UNSEEN", "executor": "3", "host": "worker-7", '
    ...     '"kind": "unseen", "text": "no such file", "path": "/data/home/probe"}')
    >>> print(error.message)
    executor 3 on worker-7 does not see the home: ...
    """

    code = "HOME_UNSEEN"

    def __init__(self, line: str) -> None:
        failure = explain(line)
        super().__init__(failure.sentence, remedy=failure.remedy)
        self.__cause__ = find_coded(line)  # by which a running job's failure is explained


class HomeProbe:
    """Asks executors, where there are any; a local master has none but the driver itself."""

    def __init__(self, job: JobHome, spark: SparkSession) -> None:
        self._job = job
        self._spark = spark
        self._probe: Any = None
        self._next = 0.0

    def __enter__(self) -> Self:
        from headgate import jvm

        if not is_local(str(self._spark.sparkContext.master)):
            path = f"{self._job.path}/{_FOLDER}"
            self._job.files.delete_tree(path)  # what a killed driver left
            nonce = uuid.uuid4().hex
            folder = self._job.files.location(f"{path}/{nonce}")
            try:
                self._probe = jvm.home_probe(self._spark, folder, nonce)
            except Exception as error:
                failure = jvm.explain_failure(error)
                raise HeadgateError(
                    f"Spark's driver cannot write to the home: {failure.sentence}",
                    code=failure.reason.name,
                    remedy=failure.remedy,
                ) from error
        return self

    def check(self, on_wait: Callable[[], None], *, stop: Callable[[], bool]) -> None:
        """Wait until all executors that there are have answered; refuse if one does not see it."""
        if self._probe is None:
            return
        self._probe.start()
        while self._probe.busy() and not stop():
            on_wait()
            time.sleep(_WAIT_SECONDS)
        self._judge()

    def poll(self) -> None:
        """Ask executors that have come since; raises for one that does not see the home."""
        if self._probe is None or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LATER_SECONDS
        self._judge()
        if not self._probe.busy() and self._probe.pending():
            self._probe.start()

    def __exit__(self, *_: object) -> None:
        if self._probe is not None:
            with suppress(Exception):  # a JVM that is gone, or a disk that is full
                self._probe.close()
            with suppress(Exception):
                self._job.files.delete_tree(f"{self._job.path}/{_FOLDER}")

    def _judge(self) -> None:
        if (found := self._probe.found()) is not None:
            raise HomeUnseenError(str(found))


def is_local(master: str) -> bool:
    """Whether the driver's process runs all tasks.

    >>> [is_local(m) for m in ("local", "local[*]", "local-cluster[2,1,1024]", "yarn")]
    [True, True, False, False]
    """
    return master == "local" or master.startswith("local[")
