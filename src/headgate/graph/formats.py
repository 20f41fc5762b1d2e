"""graph.json of every format that was ever written, read as the current one.

Format 1 had texts for people in `detail`, and went by them. Its graphs keep them beside what is
made of them: a graph is the same as one of format 1 if it would have had the same texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headgate.base.secrets import redact, shown
from headgate.graph.kinds import KINDS
from headgate.graph.model import FORMAT_VERSION, Graph, Step, fingerprint_of

NEWEST = FORMAT_VERSION
_ROLES = ("source", "table", "sink")
_INTERNAL = ("state_key", "by", "required", "code")
_ONE_FOR_ONE = ("select", "with_columns", "drop")
_NAMES_ONLY = ("table", "inputs", "timers", "required")


def current(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A graph.json as the current format has it; one of format 1 keeps its version and details."""
    if data.get("version", 1) != 1:
        return data
    return {**data, "steps": [_step(step) for step in data["steps"]]}


def config_of(step: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config of a step of a graph.json; of format 1 what upgrades need of it."""
    kind = KINDS.get(str(step["kind"]))
    if "detail" in step:
        return kind.config_1(step["detail"]) if kind is not None else {}
    config: Mapping[str, Any] = step["config"]
    return config


def with_address(step: Mapping[str, Any], address: str) -> dict[str, Any]:
    """A step of a graph.json that reads or writes elsewhere."""
    moved = {**step, "address": address}
    return (
        {**moved, "detail": {**step["detail"], "address": address}} if "detail" in step else moved
    )


def same(old: Mapping[str, Any], new: Graph) -> bool:
    """Whether a graph.json, read by `current`, is that of a graph."""
    if old.get("version", 1) != 1:
        return Graph.from_json(old).fingerprint() == new.fingerprint()
    made = [_as_format_1(step) for step in new.steps]
    if None in made:
        return False
    was = [{name: step[name] for name in _FIELDS} | {"location": None} for step in old["steps"]]
    return fingerprint_of(tuple(old["sources"]), was) == fingerprint_of(
        new.sources, [step for step in made if step is not None]
    )


_FIELDS = (
    "id", "kind", "named", "inputs", "outputs", "schema", "stateful", "operator_id", "detail",
    "stores",
)  # fmt: skip


def _as_format_1(step: Step) -> dict[str, Any] | None:
    """A step as format 1 would have written it, but for its place; None if it had no such kind."""
    kind = KINDS.get(step.kind)
    detail = kind.detail_1(step.address, step.config) if kind is not None else None
    if detail is None:
        return None
    data = {**step.identity(), "detail": _redacted(detail), "location": None}
    return {name: data[name] for name in (*_FIELDS, "location")}


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    """A step of format 1 with the fields of the current one."""
    detail: dict[str, str] = _redacted(step.get("detail", {}))
    kind = str(step.get("kind", ""))
    return {
        **step,
        "schema": redact(step.get("schema", "")),
        "detail": detail,
        "role": kind if kind in _ROLES else "step",
        "state_key": json.loads(detail.get("state_key", "[]")),
        "state_view": "named" if kind == "process" else "stores",
        "address": detail.get("address", ""),
        "config": {},
        "config_version": 1,
        "labels": {
            name: text for name, text in detail.items() if name not in (*_INTERNAL, "address")
        },
        "one_for_one": kind in _ONE_FOR_ONE,
        "stores": step.get("stores") or [],
    }


def _redacted(detail: Mapping[str, str]) -> dict[str, str]:
    """Without secrets: an older Headgate wrote passwords of addresses into it."""
    return {
        name: text
        if name in _NAMES_ONLY
        else shown("", text)
        if name == "address"
        else redact(text)
        for name, text in detail.items()
    }
