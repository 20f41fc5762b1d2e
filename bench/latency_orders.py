"""Owns the orders of the latency bench: what number so-and-so is, and where it must come out."""

from __future__ import annotations

from dataclasses import dataclass

ITEMS = 10_000
USERS = 50_000
"""What the tables of the job `store` hold."""
JOBS = ("store", "window", "process")
PARTITIONS = 2
INPUTS = {"store": ("orders", "users", "items"), "window": ("orders",), "process": ("orders",)}
OUTPUTS = {
    "store": ("enriched", "missing_users", "missing_items"),
    "window": ("totals",),
    "process": ("totals",),
}
# One in a hundred names a user, and one an item, that no table holds.
_UNKNOWN_USER, _UNKNOWN_ITEM = 50, 75
_MINUTE = 60


def users_of(job: str, rate: int) -> int:
    """How many users order.

    In the jobs without tables each orders once a minute: a batch then has no two orders of one
    user, so that a window gives an early row for every order.
    """
    return USERS if job == "store" else _MINUTE * rate


def order_line(number: int, users: int, sent_micros: int) -> str:
    """Order `number` as JSON: `invoiceId` is the number, `createdAt` the time it was sent.

    >>> order_line(1, 100, 7)[:60]
    '{"invoiceId":1,"lineItemId":1,"userId":19,"itemId":31,"itemN'
    """
    user, item = number * 7919 % users, number * 31 % ITEMS
    if number % 100 == _UNKNOWN_USER:
        user += users
    if number % 100 == _UNKNOWN_ITEM:
        item += ITEMS
    return (
        f'{{"invoiceId":{number},"lineItemId":{number},"userId":{user},"itemId":{item},'
        '"itemName":"prize-winning instrument","itemCategory":"instrument","price":1.5,'
        f'"createdAt":{sent_micros},"paidAt":1}}'
    )


def output_of(job: str, number: int) -> str:
    """The topic that order `number` must come out of.

    >>> output_of("store", 150), output_of("window", 150)
    ('missing_users', 'totals')
    """
    if job != "store":
        return "totals"
    kind = number % 100
    if kind == _UNKNOWN_USER:
        return "missing_users"
    return "missing_items" if kind == _UNKNOWN_ITEM else "enriched"


@dataclass(frozen=True)
class Stretch:
    """A measured part of a run: from `warm_up` seconds after the first order, so many seconds."""

    warm_up: int
    seconds: int

    def orders(self, rate: int) -> tuple[int, int]:
        """The numbers of the orders that are sent in it."""
        return self.warm_up * rate, (self.warm_up + self.seconds) * rate
