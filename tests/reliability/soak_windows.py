"""Owns `make soak-windows`: thousands of random windows against the truth in plain Python.

python -m tests.reliability.soak_windows --cases 5000
python -m tests.reliability.soak_windows --seed 17   plays one job again
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from _pytest.outcomes import Failed  # what pytest.fail raises, which is no Exception

import tests.conftest  # noqa: F401 - how the JVM starts
from headgate.runtime.session import get_session
from tests.steps.test_window_properties import plot


def main() -> int:
    """Play jobs until there were enough cases; 0 if all agreed with the truth."""
    parser = argparse.ArgumentParser(prog="soak-windows")
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, help="of one job that is to be played again")
    options = parser.parse_args()
    spark = get_session(master="local[2]")
    pick = random.SystemRandom()
    cases, wrong = 0, []
    while not cases or (options.seed is None and cases < options.cases):
        seed = pick.randrange(1 << 32) if options.seed is None else options.seed
        began = time.monotonic()
        try:
            cases += plot(seed).play()["all"]
            said = "agrees"
        except (Exception, Failed) as error:
            cases += 1
            said = f"fails\n{error}"
            wrong.append(seed)
        print(f"seed {seed}: {said} ({time.monotonic() - began:.0f} s, {cases} cases)", flush=True)
    spark.stop()
    print(f"{cases} cases; wrong seeds: {wrong or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
