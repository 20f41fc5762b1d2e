"""Makes the topics of an online store: users, items and orders, the same for the same seed.

Users come and go: each round changes some of them and deletes some. Of the orders a few name a
user or an item that never existed, and a few are not readable at all. What was made is counted in
`produced.json`, so that a job's output can be checked against it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headgate.connectors.log.files import Record, TopicFiles

# Shares, of the users in each round and of the orders.
USERS_CHANGED, USERS_DELETED, ITEMS_CHANGED = 0.05, 0.003, 0.02
UNKNOWN_USER, UNKNOWN_ITEM, BROKEN = 0.01, 0.01, 0.005

_START = 1_700_000_000_000  # the store opens; all times are milliseconds since 1970
_FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hugo", "Ida", "Jon", "Kira", "Leo")
_LAST = ("Adler", "Brook", "Cole", "Diaz", "Evans", "Frost", "Gray", "Hill", "Ito", "Lund", "Moss")
_ADJECTIVES = ("compact", "folding", "heavy", "light", "quiet", "sturdy", "tiny", "waterproof")
_CATEGORIES = ("camera", "drum", "kettle", "lamp", "radio", "tent")
_MODIFIERS = ("bag", "case", "holder", "kit", "stand")


@dataclass(frozen=True)
class Settings:
    """How much to make."""

    users: int = 5_000
    items: int = 500
    orders: int = 100_000
    seed: int = 7
    partitions: int = 2
    rounds: int = 10


@dataclass
class Produced:
    """What was made, by kind. `orders` counts all of them, the broken ones too."""

    users: int = 0
    user_updates: int = 0
    user_deletions: int = 0
    items: int = 0
    item_updates: int = 0
    orders: int = 0
    orders_unknown_user: int = 0
    orders_unknown_item: int = 0
    orders_broken: int = 0


@dataclass
class Round:
    """The records of one round: changes of the tables first, then orders."""

    users: list[Record] = field(default_factory=list)
    items: list[Record] = field(default_factory=list)
    orders: list[Record] = field(default_factory=list)


class Store:
    """An online store that lives round by round.

    >>> [len(part.orders) for part in Store(Settings(users=9, items=3, orders=7, rounds=2)).play()]
    [4, 3]
    """

    def __init__(self, settings: Settings) -> None:
        self.produced = Produced()
        self._settings = settings
        self._random = random.Random(settings.seed)
        self._deleted: set[int] = set()

    def play(self) -> Iterator[Round]:
        """All rounds, one after the other; `produced` counts what has been made so far."""
        rounds = self._settings.rounds
        for number in range(rounds):
            made = Round()
            if number == 0:
                self._open(made)
            else:
                self._change(made)
            first = self._settings.orders * number // rounds
            last = self._settings.orders * (number + 1) // rounds
            made.orders = [Record(self._order(order)) for order in range(first, last)]
            yield made

    def _open(self, made: Round) -> None:
        made.users = [self._user(number) for number in range(self._settings.users)]
        made.items = [self._item(number) for number in range(self._settings.items)]
        self.produced.users, self.produced.items = len(made.users), len(made.items)

    def _change(self, made: Round) -> None:
        users = range(self._settings.users)
        for number in self._some(users, USERS_CHANGED):
            # A change of a deleted user is a return: the store knows the user again.
            made.users.append(self._user(number, changed=True))
            self._deleted.discard(number)
            self.produced.user_updates += 1
        for number in self._some(users, USERS_DELETED):
            if number not in self._deleted:
                made.users.append(Record(None, key=str(number)))  # deletes the key
                self._deleted.add(number)
                self.produced.user_deletions += 1
        for number in self._some(range(self._settings.items), ITEMS_CHANGED):
            made.items.append(self._item(number))
            self.produced.item_updates += 1

    def _some(self, numbers: range, share: float) -> list[int]:
        return self._random.sample(numbers, k=round(len(numbers) * share))

    def _user(self, number: int, *, changed: bool = False) -> Record:
        first, last = self._random.choice(_FIRST), _LAST[number % len(_LAST)]
        host = "example.net" if changed else "example.org"
        user = {
            "id": number,
            "firstName": first,
            "lastName": last,
            "emailAddress": f"{first}.{last}.{number}@{host}".lower(),
            "createdAt": _START - 1000 * (number + 1),
            "deletedAt": -1,
            "mergedAt": -1,
            "parentUserId": -1,
        }
        return Record(json.dumps(user), key=str(number))

    def _item(self, number: int) -> Record:
        adjective = _ADJECTIVES[number % len(_ADJECTIVES)]
        category = _CATEGORIES[number % len(_CATEGORIES)]
        modifier = _MODIFIERS[number % len(_MODIFIERS)]
        item = {
            "id": number,
            "createdAt": _START - 5000 * (number + 1),
            "adjective": adjective,
            "category": category,
            "modifier": modifier,
            "name": f"{adjective} {category} {modifier}",
            "price": round(self._random.uniform(1, 200), 2),
        }
        return Record(json.dumps(item), key=str(number))

    def _order(self, number: int) -> str:
        chance, produced = self._random, self.produced
        user, item = chance.randrange(self._settings.users), chance.randrange(self._settings.items)
        unknown_user, unknown_item = chance.random() < UNKNOWN_USER, chance.random() < UNKNOWN_ITEM
        category = _CATEGORIES[item % len(_CATEGORIES)]
        # A few seconds out of order, as orders from several tills are.
        created = _START + number * 20 + chance.randrange(3_000)
        text = json.dumps(
            {
                "invoiceId": number // 3,
                "lineItemId": number,
                "userId": user + self._settings.users if unknown_user else user,
                "itemId": item + self._settings.items if unknown_item else item,
                "itemName": f"{category} {item}",
                "itemCategory": category,
                "price": round(chance.uniform(1, 200), 2),
                "createdAt": created,
                "paidAt": created + chance.randrange(60_000),
            }
        )
        produced.orders += 1
        if chance.random() < BROKEN:
            produced.orders_broken += 1
            return self._break(text)
        produced.orders_unknown_user += unknown_user
        produced.orders_unknown_item += unknown_item
        return text

    def _break(self, text: str) -> str:
        """A record cut short, one with a word for a number, or no JSON at all."""
        return self._random.choice(
            [
                text[: self._random.randrange(1, len(text))],
                text.replace('"userId": ', '"userId": "somebody", "was": '),
                f"order lost: {text.count(',')} fields",
            ]
        )


def generate(out: Path, settings: Settings, *, progress: bool = False) -> Produced:
    """Write the topics `users`, `items` and `orders` under `out`, and `produced.json`."""
    store = Store(settings)
    users, items, orders = (TopicFiles(out / name) for name in ("users", "items", "orders"))
    for topic in (users, items, orders):
        topic.create(settings.partitions)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not progress) as bar:
        task = bar.add_task("orders", total=settings.orders)
        for made in store.play():
            users.append(made.users)
            items.append(made.items)
            orders.append(made.orders)
            bar.update(task, advance=len(made.orders))
    report = {"version": 1, "settings": asdict(settings), "produced": asdict(store.produced)}
    (out / "produced.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return store.produced


def main() -> None:
    """The command line: how much to make, and where."""
    parser = argparse.ArgumentParser(
        description="Makes the topics of an online store; the same seed makes the same records.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("data"), help="folder for the topics")
    for option in fields(Settings):
        help = _HELP[option.name]
        parser.add_argument(f"--{option.name}", type=_positive, default=option.default, help=help)
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=sys.stderr.isatty(),
        help="show a progress bar",
    )
    given = vars(parser.parse_args())
    out, progress = given.pop("out"), given.pop("progress")
    if (out / "orders").exists():
        parser.error(f"there are topics in {out} already: remove them or choose another --out")
    produced = generate(out, Settings(**given), progress=progress)
    for name, count in asdict(produced).items():
        print(f"{count:>10,} {name.replace('_', ' ')}")
    print(f"topics log:{out}/users, log:{out}/items and log:{out}/orders; {out}/produced.json")


_HELP = {
    "users": "how many users there are",
    "items": "how many items there are",
    "orders": "how many orders to make, all rounds together",
    "seed": "decides everything that is left to chance",
    "partitions": "of each topic",
    "rounds": "how often users and items change between orders",
}


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


if __name__ == "__main__":
    main()
