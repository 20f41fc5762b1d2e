"""Finds out beside a running job what it waits for: a broker that does not answer, or executors.

The thread that drives a job may be held up for minutes by what it waits for, so a thread of its own
looks. It asks brokers only when nothing has moved for a while, and never touches the query.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headgate.home.times import now
from headgate.runtime.services import Used, services_of
from headgate.runtime.waits import Waits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.graph.plan import BuiltJob

# Waiting is to be said within 5 seconds, also on a page that asks every 2: this long without news
# (there is some every second, even if there are no rows), a look, and a probe.
_QUIET_SECONDS = 1.3
_PROBE_SECONDS = 1.2
_LOOK_SECONDS = 0.25
_AGAIN_SECONDS = 2.0
_EXECUTORS = "executors"
_END_SECONDS = 5.0


class WaitingWatch:
    """Looks several times a second from ``start`` to ``close``."""

    def __init__(
        self,
        waits: Waits,
        services: Sequence[Used],
        *,
        news: Callable[[], object],
        idle: Callable[[], bool],
        lacks: Callable[[], str | None],
    ) -> None:
        """``news`` gives something else whenever the job has got on, ``idle`` whether it has
        nothing to do, ``lacks`` why it has no executors if it needs some."""
        self._waits = waits
        self._services = services
        self._news = news
        self._idle = idle
        self._lacks = lacks
        self._ended = threading.Event()
        self._last: object = None
        self._moved = time.monotonic()
        self._probed = 0.0
        self._lacking: float | None = None
        self._thread = threading.Thread(target=self._watch, name="headgate-waiting", daemon=True)

    def start(self) -> WaitingWatch:
        """Begin to look."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Look no more; the job waits for nothing."""
        self._ended.set()
        self._thread.join(_END_SECONDS)
        self._waits.close()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            with suppress(Exception):  # the JVM may be gone; whoever drives the job says so
                self._look()

    def _look(self) -> None:
        news = self._news()
        if news != self._last:
            self._last, self._moved = news, time.monotonic()
        self._look_for_executors()
        self._look_for_brokers()
        self._waits.remind()

    def _look_for_brokers(self) -> None:
        waiting = any(wait.kind == "broker" for wait in self._waits.now)
        still = time.monotonic() - self._moved
        if still < _QUIET_SECONDS and not waiting:
            return
        if not waiting and (time.monotonic() - self._probed < _AGAIN_SECONDS or self._idle()):
            return
        self._probed = time.monotonic()
        for used in self._services:
            probed_at = now()
            if used.service.answers(_PROBE_SECONDS):
                self._waits.end("broker", str(used))
            elif not self._ended.is_set():
                self._waits.begin("broker", str(used), "it has not answered", since=probed_at)

    def _look_for_executors(self) -> None:
        why = self._lacks()
        if why is None:
            self._lacking = None
            self._waits.end("executors", _EXECUTORS)
            return
        self._lacking = self._lacking or time.monotonic()
        # executors of a cluster that has room for them are there after a moment
        if time.monotonic() - self._lacking >= _QUIET_SECONDS:
            self._waits.begin("executors", _EXECUTORS, why)


def watch_waiting(
    waits: Waits,
    built: BuiltJob,
    spark: SparkSession,
    *,
    news: Callable[[], object],
    query: Callable[[], Any],
) -> WaitingWatch:
    """Watch a job in this session; ``query`` gives the query that runs at the moment, if any."""

    def idle() -> bool:
        running = query()
        return running is not None and running.isActive and not running.status["isTriggerActive"]

    return WaitingWatch(
        waits, services_of(built), news=news, idle=idle, lacks=lambda: lacks_executors(spark)
    ).start()


def lacks_executors(spark: SparkSession) -> str | None:
    """Why a job has no executors, if it has none and needs some."""
    context = spark.sparkContext
    master = str(context.master)
    if master == "local" or master.startswith("local["):
        return None
    inside: Any = context._jsc.sc()
    if inside.getExecutorMemoryStatus().size() > 1:  # the driver is one of them
        return None
    on_demand = inside.getConf().getBoolean("spark.dynamicAllocation.enabled", False)
    if on_demand and not len(inside.statusTracker().getActiveJobIds()):
        return None  # none are kept while there is nothing to do
    return f"{master} has given the job none"
