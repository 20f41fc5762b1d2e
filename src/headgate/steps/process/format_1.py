"""Process steps in graphs of format 1, whose texts for people were all that there was.

The words here are those of homes that exist: they must not change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from headgate.base.durations import spell_duration


def config_of(detail: Mapping[str, str]) -> dict[str, Any]:
    """What upgrades need of the config of such a step.

    >>> config_of({"timers": "idle (event), hour (processing)"})["timers"]
    {'idle': 'event', 'hour': 'processing'}
    """
    timers = [text.split() for text in detail.get("timers", "").split(", ") if text]
    return {
        "inputs": detail.get("inputs", "").split(", "),
        "key": json.loads(detail.get("state_key", "[]")),
        "written": json.loads(detail.get("by", "{}")),
        "timers": {name: clock.strip("()") for name, clock in timers},
        "required": json.loads(detail.get("required", "[]")),
    }


def detail_of(config: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a step of this config."""
    by = {"by": json.dumps(config["written"])} if config["written"] else {}
    return {
        "function": config["function"],
        "inputs": ", ".join(config["inputs"]),
        "key": ", ".join(config["key"]),
        "states": ", ".join(map(_state_text, config["states"])),
        "timers": ", ".join(f"{name} ({clock})" for name, clock in config["timers"].items()),
        "on_error": config["on_error"],
        "code": config["code"],
        "state_key": json.dumps(config["key"]),
        **by,
        "required": json.dumps(config["required"]),
    }


def _state_text(state: Mapping[str, Any]) -> str:
    kinds = state["value"] if state["key"] is None else f"{state['key']}, {state['value']}"
    ttl = state["ttl_ms"]
    over = f", ttl {spell_duration(timedelta(milliseconds=ttl))}" if ttl else ""
    return f"{state['name']} {state['kind']}({kinds}{over})"
