"""Which seeds a property test plays: one that never changes, or those that HEADGATE_SEEDS asks for.

`HEADGATE_SEEDS=20` asks for twenty others each time, `HEADGATE_SEEDS=seed:17` for that one again.
"""

from __future__ import annotations

import os
import random


def seeds(usual: int = 0) -> list[int]:
    """The seeds, for pytest.mark.parametrize: a test's name tells which one failed."""
    asked = os.environ.get("HEADGATE_SEEDS")
    if asked is None:
        return [usual]
    if asked.startswith("seed:"):
        return [int(asked.removeprefix("seed:"))]
    pick = random.SystemRandom()
    return [pick.randrange(1 << 32) for _ in range(int(asked))]
