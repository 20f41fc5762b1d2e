"""A job over events that come while its drivers, or its executors, are killed with -9."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path

from tests.reliability.processes import Cluster, Driver
from tests.reliability.test_driver_kills import checkpoints, work_a_while
from tests.reliability.window_data import Events

Start = Callable[..., Driver]
"""Starts a driver of the job over data and a home, with flags, and Spark's as `spark`."""
Finish = Callable[[Path, Path], None]
"""Runs the job over all that is left."""


def drivers_die(folder: Path, job: str, start: Start, finish: Finish) -> Events:
    """Three drivers, one after the other, at random moments; a fourth one finishes."""
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    moments = random.Random(seed)
    data, home = folder / "data", folder / "home"
    events = Events(data, chunks=30, size=1000, seed=1, taken=lambda: checkpoints(home, job))
    events.start()
    for _ in range(3):
        driver = start(data, home)
        assert work_a_while(driver, home, 1, moments.uniform(0, 3), job)
        driver.kill()
    events.finish()
    finish(data, home)
    print(f"3 kills, {checkpoints(home, job)} checkpoints")
    return events


def executors_die(folder: Path, job: str, start: Start, finish: Finish) -> Events:
    """Two executors of a cluster, while tasks fail after their commit; a local driver finishes."""
    data, home = folder / "data", folder / "home"
    cluster = Cluster(folder, workers=2)
    try:
        events = Events(data, chunks=30, size=1000, seed=2, taken=lambda: checkpoints(home, job))
        events.start()
        driver = start(data, home, "--parallelism", "3", spark=cluster.flags(fail_every=3))
        cluster.kill_executors(
            driver, 2, pause=(3, 5), ready=lambda kills: checkpoints(home, job) > 2 * kills
        )
        events.finish()
        driver.process.send_signal(signal.SIGTERM)
        assert driver.wait(180) == 0, driver.text()[-3000:]
    finally:
        cluster.stop()
    finish(data, home)
    print(f"2 executors killed, {checkpoints(home, job)} checkpoints")
    return events
