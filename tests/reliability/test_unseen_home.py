"""A home that executors do not see, on a real cluster: refused before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.home.layout import Home
from tests.reliability.processes import Cluster, Driver
from tests.reliability.small_disk import needs_mounts
from tests.reliability.store_data import Producer
from tests.reliability.store_truth import written
from tests.reliability.test_disk import until
from tests.reliability.test_driver_kills import STORE, checkpoints


@needs_mounts
@pytest.mark.slow
def test_a_home_that_an_executor_does_not_see_is_refused(tmp_path: Path) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    home.mkdir()
    producer = Producer(data, orders=3_000, chunks=3, seed=11)
    producer.chunk()
    cluster = Cluster(tmp_path, workers=1)
    flags = cluster.flags(fail_every=0)
    try:
        # all executors see it, until one comes that does not
        driver = Driver(STORE, data, home, "--parallelism", "4", spark=flags)
        until(lambda: checkpoints(home) > 0, driver)
        before = written(data)
        cluster.add_worker(home)
        producer.chunk()
        assert driver.wait(90) == 5, driver.text()[-3000:]
        said = driver.text()
        # and now there is one from the start
        made = checkpoints(home)
        known = written(data)
        again = Driver(STORE, data, home, "--bounded", spark=flags)
        assert again.wait(90) == 5, again.text()[-3000:]
    finally:
        cluster.stop()
    for text in (said, again.text().removeprefix(said)):
        assert "does not see the home" in text and f"{home}" in text and "127.0.0.1" in text, text
        assert "shared file system" in text and "object store" in text, text
    assert checkpoints(home) == made and written(data) == known, "nothing was read"
    assert all(known[name] >= rows for name, rows in before.items())
    assert not list(home.rglob("*probe*")), "the probe leaves nothing behind"
    assert Home(str(home)).job("store").read().lease is None
