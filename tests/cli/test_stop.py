"""`headgate stop`, `restart` and others from one process to another, through the home alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.home.operations import Operations
from headgate.snapshots.spark_log import pending_batch
from tests.cli.test_run import APP, Folder

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    strategy = 'restart=hg.fixed_delay(attempts=9, delay="100 ms"), checkpoints'
    made.write(APP.replace("checkpoints", strategy, 1))
    yield made
    for process in made.processes:
        process.kill()


def tell(shop: Folder, *arguments: str) -> tuple[int, str, str]:
    """Run a command beside the job: exit code, standard output and error."""
    process = shop.headgate(*arguments)
    shop.processes.remove(process)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def children(pid: int) -> list[int]:
    shown = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in shown.stdout.split()]


def test_a_job_is_asked_through_the_home_to_restart_and_to_stop(shop: Folder) -> None:
    shop.produce(1000)
    driver = shop.headgate("run", "app.py", "--parallelism", "2")
    shop.wait_for(lambda: shop.processed() == 1000)

    code, out, err = tell(shop, "restart", "small", "--parallelism", "3", "--json")
    assert code == 0, err
    record = json.loads(out)
    assert (record["kind"], record["state"], record["result"]["run"]) == ("restart", "done", "r2")
    assert "small goes on in run r2" in err
    shop.produce(1000)
    shop.wait_for(lambda: shop.current.id == "r2" and shop.processed() == 2000)
    shop.assert_exact()
    assert shop.current.read().parallelism == 3

    shop.produce(3000)
    code, out, err = tell(shop, "stop", "small", "--label", "before_v2", "--drain")
    assert code == 0, err
    assert out.startswith("savepoint sp:before_v2   ")
    assert "start it again with: headgate run app.py:small\n" in err
    assert "go back to this point later: headgate run app.py:small --from sp:before_v2" in err
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == 0, said
    assert "job small stopped" in said
    shop.assert_exact()
    assert pending_batch(shop.current) is None
    event = shop.current.events()[-1]
    assert (event.kind, event.details["savepoint"]) == ("stopped", "before_v2")
    assert event.details["reason"].startswith("headgate stop (op-")

    code, _, err = tell(shop, "stop", "small")
    assert code == 5 and "job 'small' is not running" in err


def test_a_job_whose_spark_is_gone_does_not_pretend_to_restart(shop: Folder) -> None:
    shop.produce(100)
    driver = shop.headgate("run", "app.py")
    shop.wait_for(lambda: shop.processed() == 100)
    operation = Operations(shop.job).request("checkpoint")
    for pid in children(driver.pid):
        os.kill(pid, signal.SIGKILL)
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == 1
    assert "this process has no Spark any more" in err and "Traceback" not in err
    failed = shop.current.events()[-1]
    assert (failed.kind, failed.details["reason"]) == ("failed", "DRIVER_GONE")
    # the next start does what was asked for, or says that it was not done
    code, err = shop.run("--bounded")
    assert code == 0, err
    assert Operations(shop.job).read(operation.id).ended
    shop.assert_exact()
