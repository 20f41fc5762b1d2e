"""Owns the rows that every engine must give, computed without any of them.

It reads only the orders: which users and items there are, and what they look like, follows from
the sizes of the data. A table row that an engine lost shows as a difference.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from bench.compare import Digest, digest_rows
from bench.data import Sizes, first_orders, item_line, user_line
from bench.result import OUTPUTS

Row = dict[str, Any]


def expected(data_dir: Path, orders: int, *, processes: int = 2) -> dict[str, Digest]:
    """The digest of each output for the first orders of a data set; kept beside the data.

    >>> expected(data, 100_000)["enriched"].count  # doctest: +SKIP
    98048
    """
    kept = data_dir / f"_truth-{orders}.json"
    if kept.exists():
        known = json.loads(kept.read_text(encoding="utf-8"))
        return {name: Digest(**known[name]) for name in OUTPUTS}
    sizes = Sizes(**json.loads((data_dir / "sizes.json").read_text(encoding="utf-8")))
    work, left = [], orders
    for file in first_orders(data_dir, orders):
        work.append((str(file), left, sizes))
        left -= int(file.name.split("-")[1])
    truth = {name: Digest() for name in OUTPUTS}
    with ProcessPoolExecutor(processes) as pool:
        for part in pool.map(_digest_file, work):
            truth = {name: truth[name] + part[name] for name in OUTPUTS}
    aside = kept.with_name(f"{kept.name}.{os.getpid()}")
    aside.write_text(json.dumps({name: asdict(truth[name]) for name in OUTPUTS}), encoding="utf-8")
    aside.rename(kept)
    return truth


def outputs(orders: Iterator[Row], sizes: Sizes) -> Iterator[tuple[str, Row]]:
    """Each order with the name of the output it belongs to, and its row there."""
    for order in orders:
        if order["userId"] >= sizes.users:
            yield "missing_users", order
            continue
        user = orjson.loads(user_line(order["userId"]))
        if order["itemId"] >= sizes.items:
            yield "missing_items", {**order, "user": user}
            continue
        row = {name: order[name] for name in ("invoiceId", "lineItemId", "createdAt", "paidAt")}
        yield "enriched", {**row, "user": user, "item": _item(order["itemId"])}


@lru_cache(maxsize=10_000)
def _item(number: int) -> Row:
    item: Row = orjson.loads(item_line(number))
    return item


def _digest_file(work: tuple[str, int, Sizes]) -> dict[str, Digest]:
    path, limit, sizes = work
    truth = {name: Digest() for name in OUTPUTS}
    with open(path, "rb") as file:
        for name, row in outputs(map(orjson.loads, islice(file, limit)), sizes):
            truth[name] += digest_rows([row])
    return truth
