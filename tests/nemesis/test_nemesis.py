"""A short run of the nemesis with a fixed seed; `make nemesis` runs it for as long as one likes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.connectors.log.files import TopicFiles
from tests.nemesis.faults import KINDS
from tests.nemesis.jobs import Flow
from tests.nemesis.run import Plan, Round, play, report
from tests.nemesis.world import Logs
from tests.reliability.topics import LogTopics

# Those that take long, or need more than a user has, are for longer runs.
SHORT = {
    "kafka": ("kill driver", "answer lost", "request held back", "resets", "stop JVM"),
    "log": ("kill JVM", "kill Python worker", "state file lost", "stop driver"),
}
# Those of `log` are all four kinds; those of `kafka` are answers lost twice, a request that comes
# late, and a driver that is killed. Each took about 110 s on a busy machine.
SEEDS = {"kafka": 3, "log": 7}


def test_a_schedule_is_the_same_again_with_its_seed(tmp_path: Path) -> None:
    def drawn(seed: int) -> list[str]:
        one = Round(3, seed, "process", Logs(tmp_path), tmp_path, faults=40, kinds=KINDS)
        return [f"{fault} {fault.wait} {fault.settle}" for fault in one.schedule]

    assert drawn(5) == drawn(5) != drawn(6)


def test_a_backlog_in_log_topics_stays_in_the_order_of_its_events(tmp_path: Path) -> None:
    """A batch takes equal shares of the partitions: unequal ones would drift apart in time."""
    topics = LogTopics(tmp_path)
    TopicFiles(tmp_path / "events").create(2)
    flow = Flow(topics, seed=3, size=100)
    for _ in range(20):
        flow.chunk()
    read = topics.read("events")
    assert [sum(r.partition == p for r in read) for p in (0, 1)] == [1000, 1000]
    assert len({json.loads(r.value or "")["id"] for r in read}) == 2000
    halves = {(r.key, r.partition) for r in read}
    assert len(halves) == len({key for key, _ in halves}), "a key is in one partition"


@pytest.mark.slow
@pytest.mark.parametrize("system", ["kafka", "log"])
def test_a_job_is_exact_under_some_faults(tmp_path: Path, system: str) -> None:
    kinds = [kind for kind in KINDS if kind.name in SHORT[system]]
    plan = Plan(seed=SEEDS[system], minutes=0, faults=4, rounds=[("process", system)], kinds=kinds)
    told = play(plan, tmp_path)
    print(report(told, plan, 0))
    assert told.faults == 4 and told.rows > 0
    assert not told.findings, report(told, plan, 0)
