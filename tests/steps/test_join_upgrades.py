"""What a plan says when a join has changed so that its state does not fit, without Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import headgate as hg
from headgate.home.layout import Home
from headgate.snapshots.snapshot import Snapshot
from headgate.snapshots.upgrade import plan_upgrade

STORE = {
    "name": "default", "encoder": "plain", "partition_by": [0],
    "key": {"type": "struct", "fields": [{"name": "key0", "type": "long"}]},
    "value": {"type": "struct", "fields": [{"name": "left", "type": "string"}]},
}  # fmt: skip


def graph(within: dict[str, Any], **changes: str) -> dict[str, Any]:
    """A graph with one join."""
    config = {
        "within": within, "key": ["id"], "written": {}, "left_unmatched": "drop",
        "right_unmatched": "drop", **changes,
    }  # fmt: skip
    step = {
        "id": "with_payment", "kind": "join", "stateful": True, "config": config, "stores": [STORE]
    }  # fmt: skip
    return {"steps": [step], "sources": []}


def refusal(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> hg.RefusedError:
    run = SimpleNamespace(parallelism=2)
    before = SimpleNamespace(
        graph=old, record=None, name="sp:before", run=run, root="", files=Home(folder).files
    )
    plan = plan_upgrade(cast(Snapshot, before), new, parallelism=2)
    found = plan.refusal(allow_dropped_state=True)
    assert found is not None
    return found


WINDOWS = hg.tumbling("10 minutes").config()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            graph(hg.between("0 seconds", "1 hour").config()),
            graph(hg.between("0 seconds", "2 hours").config()),
            "within was 0 seconds to 1 hour and is now 0 seconds to 2 hours; rows that could "
            "match may have been forgotten already",
        ),
        (
            graph(WINDOWS),
            graph(hg.sliding("10 minutes", every="1 minute", offset="30 seconds").config()),
            "within was tumbling windows of 10 minutes and is now sliding windows of 10 minutes "
            "every 1 minute offset 30 seconds",
        ),
        (graph(WINDOWS), graph(WINDOWS, left_unmatched="null"), "left_unmatched was drop"),
    ],
)
def test_a_refused_change_of_a_join_is_in_its_own_terms(
    tmp_path: Path, old: dict[str, Any], new: dict[str, Any], said: str
) -> None:
    error = refusal(tmp_path, old, new)
    assert f"with_payment: state does not fit: {'its ' * ('un' in said)}{said}" in str(error)
    assert str(error.remedy).startswith("keep it as it was, or give the step a new name")


def test_a_changed_key_has_the_remedy_for_keys(tmp_path: Path) -> None:
    new = graph(WINDOWS)
    key = {"type": "struct", "fields": [{"name": "key0", "type": "string"}]}
    new["steps"][0]["stores"] = [{**STORE, "key": key}]
    assert str(refusal(tmp_path, graph(WINDOWS), new).remedy).startswith(
        "keep names, keys and types"
    )
