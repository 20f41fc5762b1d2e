"""Windows in graphs of format 1, whose texts for people were all that there was.

The words here are those of homes that exist: they must not change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from headgate.base.durations import LONGEST, parse_duration
from headgate.base.errors import UsageError

_MS, _US = timedelta(milliseconds=1), timedelta(microseconds=1)
_COUNT = re.compile(r"(\d+) rows(?: every (\d+))?")
_SESSION = re.compile(r"session with a gap of (.+)")
_SLIDING = re.compile(r"sliding (.+) every (.+)")
_TUMBLING = re.compile(r"tumbling (.+?)(?: offset (.+))?")


def config_of(detail: Mapping[str, str]) -> dict[str, Any]:
    """What upgrades need of the config of such a window.

    >>> config_of({"window": "sliding 10 minutes every 1 minute"})["window"]["every_us"]
    60000000
    """
    return {
        "window": _window(detail.get("window", "")),
        "key": json.loads(detail.get("state_key", "[]")),
        "written": json.loads(detail.get("by", "{}")).get(""),
        "panes": detail.get("panes"),
        "allowed_lateness_ms": _lateness(detail.get("allowed_lateness", "0 s")) // _MS,
    }


def detail_of(config: Mapping[str, Any]) -> dict[str, str] | None:
    """The texts of a window of this config; None if format 1 had no such windows."""
    window = config["window"]
    other_offset = window.get("offset_us", 0) and window["type"] != "tumbling"
    if "clock" in window or other_offset or window.get("offset_us", 0) < 0:
        return None
    by = {"by": json.dumps({"": config["written"]})} if config["written"] else {}
    return {
        "window": _window_text(config["window"]),
        "key": ", ".join(config["key"]),
        "aggregates": ", ".join(config["aggregates"]),
        "early": ", ".join(map(_trigger_text, config["early"])),
        "allowed_lateness": _spelled(config["allowed_lateness_ms"] * _MS),
        "panes": config["panes"],
        "state_key": json.dumps(config["key"]),
        **by,
    }


def _window(text: str) -> dict[str, Any]:
    if found := _COUNT.fullmatch(text):
        size = int(found[1])
        return {"type": "count", "size": size, "every": int(found[2] or size)}
    if found := _SESSION.fullmatch(text):
        return _times("session", found[1], found[1], None)
    if found := _SLIDING.fullmatch(text):
        return _times("sliding", found[1], found[2], None)
    if found := _TUMBLING.fullmatch(text):
        return _times("tumbling", found[1], found[1], found[2])
    return {"type": text}


def _times(kind: str, size: str, every: str, offset: str | None) -> dict[str, Any]:
    return {
        "type": kind,
        "size_us": parse_duration(size) // _US,
        "every_us": parse_duration(every) // _US,
        "offset_us": parse_duration(offset) // _US if offset else 0,
    }


def _lateness(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except UsageError:  # longer than is allowed now
        return LONGEST + timedelta(days=1)


def _window_text(window: Mapping[str, Any]) -> str:
    if window["type"] == "count":
        more = f" every {window['every']}" if window["every"] != window["size"] else ""
        return f"{window['size']} rows{more}"
    size, every, offset = (_spelled(window[f"{n}_us"] * _US) for n in ("size", "every", "offset"))
    if window["type"] == "session":
        return f"session with a gap of {size}"
    if window["type"] == "sliding":
        return f"sliding {size} every {every}"
    return f"tumbling {size}" + (f" offset {offset}" if window["offset_us"] else "")


def _trigger_text(trigger: Mapping[str, Any]) -> str:
    if trigger["type"] == "every":
        return f"every {_spelled(trigger['interval_us'] * _US)} of {trigger['clock']} time"
    if trigger["type"] == "after_count":
        return f"after {trigger['count']} rows"
    return f"when {trigger['condition']}{' once' if trigger['once'] else ''}"


def _spelled(value: timedelta) -> str:
    """A duration in the largest unit that has no fraction, as format 1 wrote it."""
    millis = round(value.total_seconds() * 1000)
    units = {"day": 86_400_000, "hour": 3_600_000, "minute": 60_000, "second": 1000}
    for unit, size in units.items():
        if millis and millis % size == 0:
            return f"{millis // size} {unit}{'s' * (millis != size)}"
    return f"{millis} milliseconds"
