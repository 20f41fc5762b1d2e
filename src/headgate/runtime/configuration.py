"""What a start was configured with, and where each value came from: for the event `started`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headgate.base.durations import parse_duration, spell_duration
from headgate.base.params import Reference
from headgate.base.secrets import shown
from headgate.base.settings import Checkpoints, Restart

if TYPE_CHECKING:
    from headgate.graph.definition import JobDefinition
    from headgate.runtime.options import RunOptions

Setting = dict[str, str]
"""``name``, ``value`` and ``origin``: default, job file, flag, reference (a flag says where the
value is), environment, run or headgate."""


def configuration(
    job: JobDefinition,
    options: RunOptions,
    *,
    params: Mapping[str, str],
    parallelism: int,
    master: str,
    spark: Mapping[str, str],
) -> list[Setting]:
    """Every setting of a start; values that are secret are not in it, nor in `params`."""
    return [
        *_checkpoints(job.checkpoints),
        _setting("restart.strategy", restart_words(job.restart),
                 "default" if job.restart.kind == "none" else "job file"),
        _setting("parallelism", str(parallelism), "flag" if options.parallelism else "run"),
        _setting("master", master, _master_origin(options)),
        *({"name": f"params.{name}", "value": value, "origin": _origin(value)}
          for name, value in params.items()),
        *_spark(options.conf, spark),
    ]  # fmt: skip


def restart_words(restart: Restart) -> str:
    """A restart strategy in words.

    >>> from headgate.base.settings import fixed_delay
    >>> restart_words(fixed_delay(attempts=3, delay="10 seconds"))
    'fixed_delay: at most 3 restarts, each after 10 seconds'
    """
    if restart.kind == "fixed_delay":
        count = f"{restart.attempts} restart{'s' * (restart.attempts != 1)}"
        return f"fixed_delay: at most {count}, each after {spell_duration(restart.delay)}"
    if restart.kind == "failure_rate":
        return (
            f"failure_rate: after {spell_duration(restart.delay)}, unless there are more than "
            f"{restart.attempts} failures in {spell_duration(restart.interval)}"
        )
    if restart.kind == "exponential_delay":
        return (
            f"exponential_delay: after {spell_duration(restart.delay)}, each time "
            f"{restart.multiplier:g} times as long up to {spell_duration(restart.maximum)}"
        )
    return "none: the first failure ends the job"


def _checkpoints(given: Checkpoints) -> list[Setting]:
    usual = Checkpoints()
    found = []
    for name in (
        "every", "retain", "history", "on_cancel", "timeout", "durability",
    ):  # fmt: skip
        value: Any = getattr(given, name)
        default: Any = getattr(usual, name)
        if name == "every":
            value, default = parse_duration(value), parse_duration(default)
        text = spell_duration(value) if isinstance(value, timedelta) else str(value)
        if name == "timeout":
            text = "none" if value is None else spell_duration(parse_duration(value))
        origin = "default" if value == default else "job file"
        found.append(_setting(f"checkpoints.{name}", text, origin))
    return found


def _origin(value: str) -> str:
    return "reference" if isinstance(value, Reference) else "flag"


def _master_origin(options: RunOptions) -> str:
    if options.master:
        return "flag"
    return "environment" if os.environ.get("HEADGATE_MASTER") else "default"


def _spark(given: Mapping[str, str], effective: Mapping[str, str]) -> list[Setting]:
    from headgate.runtime.spark_settings import setting_origin

    found = []
    for name in sorted(effective):
        origin = "flag" if name in given else setting_origin(name)
        if origin is not None:
            found.append(_setting(name, effective[name], origin))
    return found


def _setting(name: str, value: str, origin: str) -> Setting:
    return {"name": name, "value": shown(name, value), "origin": origin}
