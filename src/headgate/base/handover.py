"""Params that a process of Headgate hands to a job that it starts: secrets go past `ps`.

What stands on a command line can be read by every user of the machine. An environment can be read
by its owner alone, and the job takes the variable out of its own before it starts Spark.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from headgate.base.params import is_hidden

VARIABLE = "HEADGATE_SET"


def hand_over(params: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The words of a command for params as `--set` takes them, and an environment for the rest.

    >>> hand_over({"topic": "log:orders", "db_password": "hunter2"})
    (['--set', 'topic=log:orders'], {'HEADGATE_SET': '["db_password=hunter2"]'})
    """
    hidden = {name for name, value in params.items() if is_hidden(name, value)}
    words: list[str] = []
    for name, value in params.items():
        if name not in hidden:
            words += ["--set", f"{name}={value}"]
    pairs = [f"{name}={params[name]}" for name in params if name in hidden]
    return words, {VARIABLE: json.dumps(pairs)} if pairs else {}


def handed_over() -> list[str]:
    """The pairs that this process was handed; they are not there for the processes it starts."""
    return [str(pair) for pair in json.loads(os.environ.pop(VARIABLE, "[]"))]
