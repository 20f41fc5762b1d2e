"""Random windows over random events, batch cuts, crashes and restores agree with plain Python.

One job has several window steps and a stream of many keys, each with its own density, disorder,
ties and rows without a time. A case is one key's rows in one step: keys do not touch each other,
but those of a job share its batches, watermark, crashes and restores. `HEADGATE_WINDOW_CASES` asks
for more cases, with other seeds each time.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.steps.window_story import Plot

CASES = int(os.environ.get("HEADGATE_WINDOW_CASES", "500"))
KEYS = "abcdefghijklmnop"
STEPS = 7
JOBS = -(-CASES // (STEPS * len(KEYS)))
compared: dict[int, int] = {}


# a job takes seconds, so one that fails is shown as it is and not made smaller
@settings(
    max_examples=JOBS,
    deadline=None,
    derandomize="HEADGATE_WINDOW_CASES" not in os.environ,
    database=None,
    print_blob=False,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 2**32 - 1))
def play(seed: int) -> None:
    compared[seed] = Plot(seed, configs=STEPS, keys=KEYS, rows=20 * len(KEYS)).play()


@pytest.mark.slow
def test_windows_agree_with_plain_python(spark: object) -> None:
    compared.clear()
    play()
    assert sum(compared.values()) >= CASES, compared
