"""The store's generator: the same seed makes the same topics, and its counts are true."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

STORE = Path(__file__).resolve().parents[2] / "examples" / "store"


@pytest.fixture(scope="module")
def subject() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("store_generate", STORE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def make(subject: ModuleType, out: Path, **settings: int) -> Any:
    small = {"users": 200, "items": 30, "orders": 5_000, "rounds": 5}
    return subject.generate(out, subject.Settings(**(small | settings)))


def lines(topic: Path, suffix: str) -> dict[int, list[str]]:
    """The topic's records by partition, read from the files alone."""
    found: dict[int, list[str]] = {}
    for folder in sorted(topic.glob("partition-*")):
        records = found.setdefault(int(folder.name.removeprefix("partition-")), [])
        for segment in sorted(folder.iterdir()):
            base, count, _ = segment.name.removesuffix(suffix).split("-")
            assert segment.name.endswith(suffix)
            assert int(base) == len(records), "offsets have no holes"
            records += segment.read_text(encoding="utf-8").splitlines()
            assert len(records) == int(base) + int(count)
    return found


def final(topic: Path) -> dict[str, str]:
    """The latest value of each key that is not deleted."""
    rows: dict[str, str] = {}
    for records in lines(topic, ".keyed.jsonl").values():
        for record in records:
            key, value = record.split("\t", 1)
            rows.pop(key, None)
            if value:
                rows[key] = value
    return rows


def parsed(text: str) -> dict[str, Any] | None:
    """The order, or None if it is not one."""
    try:
        order = json.loads(text)
    except ValueError:
        return None
    return order if isinstance(order, dict) and isinstance(order.get("userId"), int) else None


def test_the_same_seed_makes_the_same_records(subject: ModuleType, tmp_path: Path) -> None:
    made = {}
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        make(subject, tmp_path / name, seed=seed)
        made[name] = [
            lines(tmp_path / name / "users", ".keyed.jsonl"),
            lines(tmp_path / name / "items", ".keyed.jsonl"),
            lines(tmp_path / name / "orders", ".jsonl"),
        ]
    assert made["a"] == made["b"]
    assert made["a"] != made["c"]


def test_the_counts_are_those_of_the_records(subject: ModuleType, tmp_path: Path) -> None:
    produced = make(subject, tmp_path)
    texts = [text for part in lines(tmp_path / "orders", ".jsonl").values() for text in part]
    orders = [order for text in texts if (order := parsed(text))]
    assert produced.orders == len(texts) == 5_000
    assert produced.orders_broken == len(texts) - len(orders) > 0
    assert produced.orders_unknown_user == sum(order["userId"] >= 200 for order in orders) > 0
    assert produced.orders_unknown_item == sum(order["itemId"] >= 30 for order in orders) > 0

    users = [text for part in lines(tmp_path / "users", ".keyed.jsonl").values() for text in part]
    deletions = [text for text in users if text.endswith("\t")]
    assert produced.users == 200
    assert produced.user_deletions == len(deletions) > 0
    assert produced.users + produced.user_updates + produced.user_deletions == len(users)
    written = json.loads((tmp_path / "produced.json").read_text())
    assert written["produced"]["orders"] == 5_000
    assert written["settings"]["seed"] == 7


def test_every_line_item_is_made_once_and_its_key_is_the_id(
    subject: ModuleType, tmp_path: Path
) -> None:
    make(subject, tmp_path)
    texts = [text for part in lines(tmp_path / "orders", ".jsonl").values() for text in part]
    items = Counter(order["lineItemId"] for text in texts if (order := parsed(text)))
    assert max(items.values()) == 1
    for key, value in final(tmp_path / "users").items():
        assert json.loads(value)["id"] == int(key)


def test_deleted_users_are_gone_at_the_end_and_changed_ones_are_new(
    subject: ModuleType, tmp_path: Path
) -> None:
    produced = make(subject, tmp_path, rounds=20)
    users = final(tmp_path / "users")
    assert produced.users - produced.user_deletions <= len(users) < produced.users
    assert any("example.net" in value for value in users.values())


def test_all_records_of_a_key_are_in_one_partition(subject: ModuleType, tmp_path: Path) -> None:
    make(subject, tmp_path, partitions=3)
    parts = lines(tmp_path / "users", ".keyed.jsonl")
    keys = [{record.split("\t", 1)[0] for record in records} for records in parts.values()]
    assert len(keys) == 3
    assert sum(len(part) for part in keys) == len(set.union(*keys)) == 200


def test_the_command_line_makes_topics_and_says_what(tmp_path: Path) -> None:
    def run() -> subprocess.CompletedProcess[str]:
        sizes = ["--users", "50", "--items", "5", "--orders", "300", "--progress"]
        return subprocess.run(
            [sys.executable, str(STORE / "generate.py"), "--out", str(tmp_path / "data"), *sizes],
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    ran = run()
    assert ran.returncode == 0, ran.stderr
    assert "300 orders" in ran.stdout
    assert "300/300" in ran.stderr, "the progress bar"
    again = run()
    assert again.returncode == 2
    assert "remove them or choose another --out" in again.stderr
