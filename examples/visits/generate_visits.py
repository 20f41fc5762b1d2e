"""Few visits, in order of time, one JSON line each: the data generator of the tutorial's job."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta

START = datetime(2025, 9, 4, 10)
PAUSES = {1: 5, 2: 10, 3: 30}
"""How many seconds pass between two events of a visit."""


def visits(first: int, last: int) -> Iterator[dict[str, object]]:
    """The visits from one second, counted from the start, to another."""
    for second in range(first, last):
        for visit, pause in PAUSES.items():
            if second % pause == 0:
                yield {
                    "visit_id": visit,
                    "event_id": f"event-{visit}-{second}",
                    "page": f"page{second // pause % 7}",
                    "event_time": (START + timedelta(seconds=second)).isoformat(),
                }


def main() -> int:
    """Print the visits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the second to begin with")
    parser.add_argument("--last", type=int, default=120, help="the second to end before")
    options = parser.parse_args()
    for visit in visits(options.first, options.last):
        print(json.dumps(visit))
    return 0


if __name__ == "__main__":
    sys.exit(main())
