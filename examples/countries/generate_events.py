"""Two hours of what users do, in three countries, one JSON line each; the same in every run."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

START = datetime(2026, 3, 1, 9)
COUNTRIES = {"NO": 8, "br": 5, "JP": 3}
"""How many users each has; one writes in small letters."""
HOURS = 2
DISORDER_SECONDS = 40
"""How much later than they should events come; the job waits for a minute."""


def events() -> list[dict[str, Any]]:
    """All events, as they come."""
    chance = random.Random(5)
    made = [
        event
        for country, users in COUNTRIES.items()
        for number in range(users)
        for event in _user(chance, country, f"{country.lower()}-{number}")
    ]
    made += [_event(f"nobody-{n}", None, n, minute) for n, minute in enumerate((11, 32, 77))]
    came = {id(event): chance.uniform(0, DISORDER_SECONDS) for event in made}
    return sorted(made, key=lambda e: _at(e).timestamp() + came[id(e)])


def stragglers() -> list[dict[str, Any]]:
    """Events of the first hour that come after the second: too late."""
    return [_event(f"late-{n}", "NO", n, 5 + n) for n in range(4)]


def _user(chance: random.Random, country: str, user: str) -> Iterator[dict[str, Any]]:
    """A user comes and goes; longer pauses than five minutes end a session."""
    minute = chance.uniform(0, 40)
    for number in range(chance.randint(3, 9)):
        if minute < 60 * HOURS:
            yield _event(user, country, number, minute)
        minute += chance.choice((1.5, 3, 4.5, 12, 25))


def _event(user: str, country: str | None, number: int, minute: float) -> dict[str, Any]:
    at = START + timedelta(seconds=round(minute * 60))
    return {"user_id": user, "country": country, "page": f"/p{number % 4}",
            "event_time": at.isoformat()}  # fmt: skip


def _at(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["event_time"])


def main() -> int:
    """Print the events."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("first", "second", "late"), help="which of them")
    part = parser.parse_args().part
    made = events()
    half = len(made) // 2
    parts = {"first": made[:half], "second": made[half:], "late": stragglers()}
    for event in parts[part]:
        print(json.dumps(event))
    return 0


if __name__ == "__main__":
    sys.exit(main())
