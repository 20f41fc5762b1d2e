"""Makes the events of the Nexmark auction house: the same for the same settings.

Of 50 events one is a person, three are auctions and 46 are bids, each in a topic of its own. They
come out of order, by up to half a minute of event time. As in Nexmark some auctions and bids name a
person or an auction that has not come yet, half of the bids go to a few hot auctions, and prices
are spread over six powers of ten. Some prices and times are rounded, so that some are equal and
some lie on the edge of a window.
"""

from __future__ import annotations

import argparse
import random
import sys
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from headgate.connectors.log.files import Record, TopicFiles

TOPICS = ("persons", "auctions", "bids")
SIDE_INPUT = "side_input"
SIDE_INPUT_ROWS = 10_000

PROPORTIONS = (1, 3, 46)
ROUND = sum(PROPORTIONS)
START_MS = int(datetime(2026, 3, 1, 18, tzinfo=UTC).timestamp() * 1000)
DISORDER_MS = 30_000
LONGEST_AUCTION_MS = 600_000

# Ids far apart: dense ones would lie side by side in a sorted store.
_SPARSE = 7_919
_FIRST_CATEGORY, _CATEGORIES = 10, 5
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = ("Bend", "Boise", "Cheyenne", "Kent", "Phoenix", "Portland", "Redmond", "Seattle")
_FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hugo", "Ida", "Jon", "Kira", "Leo")
_LAST = ("Adler", "Brook", "Cole", "Diaz", "Evans", "Frost", "Gray", "Hill", "Ito", "Lund", "Moss")
_ITEMS = ("camera", "drum", "kettle", "lamp", "radio", "tent")
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_CHANNELS = 1_000


@dataclass(frozen=True)
class Settings:
    """How many events, and how many of them in a second of event time."""

    events: int = 1_000_000
    seed: int = 7
    per_second: float = 5.0
    partitions: int = 2


@dataclass
class Events:
    """The lines of each topic in the order in which they come, and when each of them comes."""

    lines: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in TOPICS})
    arrivals: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in TOPICS})

    def until(self, share: float) -> dict[str, int]:
        """How many lines of each topic have come when this share of all has come.

        >>> made = make_events(Settings(events=100))
        >>> sum(made.until(0.5).values()), made.until(1.0)
        (50, {'persons': 2, 'auctions': 6, 'bids': 92})
        """
        every = sorted(at for times in self.arrivals.values() for at in times)
        reached = int(len(every) * share)
        if reached == len(every):
            return {name: len(times) for name, times in self.arrivals.items()}
        cut = every[reached]
        return {name: bisect_left(times, cut) for name, times in self.arrivals.items()}


def make_events(settings: Settings) -> Events:
    """All events, each topic in the order of arrival."""
    chance = random.Random(f"nexmark {settings.seed}")
    came: dict[str, list[tuple[float, str]]] = {name: [] for name in TOPICS}
    for name, at, line in _House(settings, chance).events():
        came[name].append((at + _delay(chance), line))
    made = Events()
    for name, rows in came.items():
        rows.sort(key=lambda row: row[0])
        made.lines[name] = [line for _, line in rows]
        made.arrivals[name] = [at for at, _ in rows]
    return made


def _delay(chance: random.Random) -> float:
    """Most events are a little late, some up to half a minute."""
    return chance.random() * (DISORDER_MS if chance.random() < 0.3 else 2_000)


class _House:
    """The auction house: who is there, and what happens next."""

    def __init__(self, settings: Settings, chance: random.Random) -> None:
        self._settings = settings
        self._chance = chance
        self._step_ms = 1000 / settings.per_second
        auctions_a_ms = settings.per_second / 1000 * PROPORTIONS[1] / ROUND
        # bids go to auctions that may still be open
        self._open = max(10, int(LONGEST_AUCTION_MS * auctions_a_ms))
        self._urls = [self._url() for _ in range(_CHANNELS)]
        self._hot_urls = [self._url() for _ in _HOT_CHANNELS]

    def events(self) -> Iterator[tuple[str, int, str]]:
        """The topic, the time and the line of each event."""
        makers = (self._person, self._auction, self._bid)
        persons, auctions = PROPORTIONS[0], PROPORTIONS[0] + PROPORTIONS[1]
        for number in range(self._settings.events):
            at = START_MS + int(number * self._step_ms + self._chance.random() * self._step_ms * 3)
            if self._chance.random() < 0.1:  # a clock that knows only seconds
                at = at // 1000 * 1000
            turn, place = divmod(number, ROUND)
            kind = 0 if place < persons else 1 if place < auctions else 2
            last_person = turn * PROPORTIONS[0] + min(place, persons - 1)
            last_auction = turn * PROPORTIONS[1] + min(place - persons, PROPORTIONS[1] - 1)
            yield TOPICS[kind], at, makers[kind](at, last_person, last_auction)

    def _person(self, at: int, person: int, auction: int) -> str:
        pick = self._chance.choice
        name = f"{pick(_FIRST)} {pick(_LAST)}"
        card = " ".join(f"{self._chance.randrange(10_000):04d}" for _ in range(4))
        return (
            f'{{"id":{person * _SPARSE},"name":"{name}",'
            f'"emailAddress":"{self._word(7)}@{self._word(5)}.com","creditCard":"{card}",'
            f'"city":"{pick(_CITIES)}","state":"{pick(_STATES)}","dateTime":"{_text(at)}",'
            f'"extra":"{self._word(20)}"}}'
        )

    def _auction(self, at: int, person: int, auction: int) -> str:
        initial = self._price()
        expires = at + 1 + self._chance.randrange(LONGEST_AUCTION_MS)
        category = _FIRST_CATEGORY + self._chance.randrange(_CATEGORIES)
        return (
            f'{{"id":{auction * _SPARSE},'
            f'"itemName":"{self._chance.choice(_ITEMS)} {self._word(6)}",'
            f'"description":"{self._word(40)}","initialBid":{initial},'
            f'"reserve":{initial + self._price()},"dateTime":"{_text(at)}",'
            f'"expires":"{_text(expires)}","seller":{self._seller(person) * _SPARSE},'
            f'"category":{category},"extra":"{self._word(20)}"}}'
        )

    def _bid(self, at: int, person: int, auction: int) -> str:
        channel, url = self._channel()
        return (
            f'{{"auction":{self._wanted(auction) * _SPARSE},'
            f'"bidder":{self._bidder(person) * _SPARSE},"price":{self._price()},'
            f'"channel":"{channel}","url":"{url}","dateTime":"{_text(at)}",'
            f'"extra":"{self._word(16)}"}}'
        )

    def _seller(self, person: int) -> int:
        """The newest person, or one of the last, or one who is still to come."""
        if self._chance.random() < 0.25:
            return person
        return max(0, person - self._chance.randrange(-3, 50))

    def _bidder(self, person: int) -> int:
        """One of a few hot bidders, or one of the last persons, or one who is still to come."""
        if self._chance.random() < 0.5:
            return person // 20 * 20
        return max(0, person - self._chance.randrange(-3, 200))

    def _wanted(self, auction: int) -> int:
        """A hot auction, or one that may be open, or one that is still to come."""
        if self._chance.random() < 0.5:
            return max(0, auction // 50 * 50)
        return max(0, auction - self._chance.randrange(-5, self._open))

    def _price(self) -> int:
        price = round(10 ** (self._chance.random() * 6) * 100)
        if self._chance.random() < 0.2:  # people like round numbers
            unit: int = 10 ** (len(str(price)) - 1)
            price = price // unit * unit
        return price

    def _channel(self) -> tuple[str, str]:
        if self._chance.random() < 0.5:
            hot = self._chance.randrange(len(_HOT_CHANNELS))
            return _HOT_CHANNELS[hot], self._hot_urls[hot]
        number = self._chance.randrange(_CHANNELS)
        return f"channel-{number}", self._urls[number]

    def _url(self) -> str:
        folders = "/".join(self._word(5) for _ in range(3))
        url = f"https://www.nexmark.com/{folders}/item.htm?query=1"
        if self._chance.random() < 0.9:
            url += f"&channel_id={self._chance.randrange(1_000_000)}"
        return url

    def _word(self, letters: int) -> str:
        # one random number is enough for several letters
        bits = self._chance.getrandbits(letters * 4)
        return f"{bits:0{letters}x}".translate(_LETTERS)


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def _text(millis: int) -> str:
    # as datetime.isoformat, in a fraction of its time
    seconds, rest = divmod(millis, 1000)
    minute, second = divmod(seconds, 60)
    known = _MINUTES.get(minute)
    if known is None:
        known = _MINUTES[minute] = f"{datetime.fromtimestamp(minute * 60, UTC):%Y-%m-%dT%H:%M}"
    return f"{known}:{second:02d}.{rest:03d}Z"


_MINUTES: dict[int, str] = {}


def write(folder: Path, made: Events, upto: dict[str, int], partitions: int) -> None:
    """Append the lines up to these counts to the topics, from where they end now."""
    for name in TOPICS:
        topic = TopicFiles(folder / name)
        if not topic.exists():
            topic.create(partitions)
        there = sum(topic.end_offsets().values())
        for partition in range(partitions):
            # row n is in partition n % partitions, whatever was there before
            first = there + (partition - there) % partitions
            rows = made.lines[name][first : upto[name] : partitions]
            topic.append((Record(line) for line in rows), partition=partition)
    side = TopicFiles(folder / SIDE_INPUT)
    if not side.exists():
        side.create(1)
        rows = [f'{{"key":{n},"value":"value {n * 31}"}}' for n in range(0, SIDE_INPUT_ROWS, 2)]
        side.append(Record(row) for row in rows)


def main() -> int:
    """Write the topics."""
    defaults = Settings()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the topics are made")
    parser.add_argument("--events", type=int, default=defaults.events)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--per-second", type=float, default=defaults.per_second)
    args = parser.parse_args()
    settings = Settings(args.events, args.seed, args.per_second)
    made = make_events(settings)
    write(args.folder, made, made.until(1.0), settings.partitions)
    print(", ".join(f"{len(made.lines[name]):,} {name}" for name in TOPICS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
