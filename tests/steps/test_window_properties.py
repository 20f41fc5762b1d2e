"""Random windows over random events, batch cuts, crashes and restores agree with plain Python.

One job has several window steps and a stream of many keys, each with its own density, disorder,
ties and rows without a time. A case is one key's rows in one step: keys do not touch each other,
but those of a job share its batches, watermark, crashes and restores. `HEADGATE_WINDOW_CASES` asks
for more cases, with other seeds each time.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headgate.connectors.log import connector as log
from tests.steps.window_cases import Config, random_configs, random_stream
from tests.steps.window_checks import check_final_rows
from tests.steps.window_story import Plot, Story
from tests.steps.window_truth import Event, Result

ASKED = "HEADGATE_WINDOW_CASES" in os.environ
CASES = int(os.environ.get("HEADGATE_WINDOW_CASES", "500"))
KEYS = [f"k{number}" for number in range(130)]
STEPS = 7
CLOCKS = 2
# a rare key may have no row at all in a random stream, so with other seeds there are jobs to spare
JOBS = -(-CASES // (CLOCKS * len(KEYS))) + (1 + CASES // 5000 if ASKED else 0)
compared: dict[int, Counter[str]] = {}


def plot(seed: int) -> Plot:
    """The job of a seed."""
    return Plot(seed, configs=STEPS, keys=KEYS, rows=12 * len(KEYS))


# a job takes seconds, so one that fails is shown as it is and not made smaller
@settings(
    max_examples=JOBS,
    deadline=None,
    derandomize=not ASKED,
    database=None,
    print_blob=False,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 2**32 - 1))
def play(seed: int) -> None:
    compared[seed] = plot(seed).play()


@pytest.mark.slow
def test_windows_agree_with_plain_python(spark: object) -> None:
    compared.clear()
    play()
    cases = Counter[str]()
    for found in compared.values():
        cases += found
    assert set(cases) == {"all", "distinct", "ordered", "processing"}
    assert min(cases.values()) >= CASES, cases


def lived(
    configs: list[Config], stream: list[Event], cut: int, parallelism: int, partitions: int
) -> Story:
    """A job that reads the stream in batches of so many rows, and is drained."""
    story = Story(configs, parallelism=parallelism, partitions=partitions)
    with pytest.MonkeyPatch.context() as patch, story.driver:
        patch.setattr(log, "MAX_RECORDS", str(cut))
        story.send(stream)
        story.run(drain=True)
    return story


def final(config: Config, rows: list[Result]) -> Counter[Any]:
    """What is told of each window in the end, by whatever panes."""
    if not config.discarding:
        return Counter(row[:-2] for row in rows if row[-2] != "early")
    ids = 3 + config.aggregates.index("ids")
    window = 1 if config.kind == "session" else 3  # a session has not had its end in early panes
    return Counter((row[:window], id) for row in rows for id in row[ids])


@pytest.mark.slow
def test_with_bounded_disorder_neither_cuts_nor_parallelism_change_the_final_rows(
    spark: object,
) -> None:
    dice = random.Random(11)
    configs = random_configs(dice, 6)
    stream = random_stream(dice, "abcdef", 150, inside=True)
    told = []
    for cut, parallelism in ((150, 1), (50, 2), (23, 4)):
        story = lived(configs, stream, cut, parallelism, partitions=1)
        told.append([final(c, rows) for c, rows in zip(configs, story.got, strict=True)])
        for config, truth in zip(configs, story.line.truths, strict=True):
            if not config.counts:
                check_final_rows(config, truth, stream)
    for config, *rows in zip(configs, *told, strict=True):
        assert rows[0] == rows[1] == rows[2], config


@pytest.mark.slow
def test_beyond_the_bound_the_same_cut_gives_the_same_rows(spark: object) -> None:
    dice = random.Random(12)
    configs = random_configs(dice, 6)
    stream = random_stream(dice, "abcdef", 150, inside=False)
    first, second = (lived(configs, stream, 40, parallelism, 2) for parallelism in (1, 3))
    for number, config in enumerate(configs):
        assert Counter(first.got[number]) == Counter(second.got[number]), config
        assert Counter(first.late[number]) == Counter(second.late[number]), config
    assert any(first.late)
