"""The process that reads state for the server: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.base.errors import HeadgateError
from headgate.home.layout import Home
from headgate.runtime.restore_services import reach, verify_data
from headgate.runtime.session import get_session
from headgate.snapshots.hold import held
from headgate.snapshots.snapshot import Snapshot, find_snapshot
from headgate.state import StateReader
from headgate.state.diff import diff_states
from headgate.state.plain import json_value, plain_rows
from headgate.state.shape import StateShape
from headgate.ui.spark_process import CONF

_IDLE_SECONDS = 600.0
# It reads one state at a time, beside jobs that need the machine more.
_CONF = {"spark.driver.memory": "1g"}
_MASTER = "local[1]"
_PLACE = "partition"


def main() -> None:
    """Answer queries until none has come for a while."""
    home = Home()
    # what Spark and Java print must not come between the answers
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    while select.select([sys.stdin], [], [], _IDLE_SECONDS)[0]:
        line = sys.stdin.readline()
        if not line:
            return
        result = json_value(answer(home, json.loads(line)))
        answers.write(json.dumps(result).encode() + b"\n")


def answer(home: Home, query: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a query, or what went wrong."""
    try:
        return {"value": _WORK[query["work"]](home, query)}
    except HeadgateError as error:
        problem = {"code": error.code, "message": error.message, "expected": error.expected,
                   "got": error.got, "remedy": error.remedy}  # fmt: skip
    except Exception as error:  # the server passes it on; the next query may succeed
        line = str(error).strip().split("\n")[0]
        message = f"reading failed: {type(error).__name__}: {line}"
        problem = {"code": "UNEXPECTED", "message": message}
    return {"error": problem}


def _rows(home: Home, query: Mapping[str, Any]) -> dict[str, Any]:
    snapshot, step, store = _named(home, query)
    limit, key, search = int(query["limit"]), query.get("key"), query.get("search")
    with held(snapshot) as kept:
        reader = StateReader(_spark(kept), kept)
        frame = reader.get(step, key, store) if key is not None else reader.frame(step, store)
        if search:
            frame = _holding(frame, search)
        # A snapshot's files do not change, and each partition is read in the order of its keys: so
        # pages of the same snapshot follow one another.
        rows = plain_rows(frame.offset(int(query.get("offset", 0))).limit(limit + 1))
    return {"snapshot": snapshot.name, "rows": rows[:limit], "truncated": len(rows) > limit}


def _holding(frame: DataFrame, search: str) -> DataFrame:
    """Rows that have these letters in a value, large or small; the text never becomes code."""
    values = [F.col(f"`{name}`").cast("string") for name in frame.columns if name != _PLACE]
    return frame.where(F.contains(F.lower(F.concat_ws(" ", *values)), F.lit(search.lower())))


def _diff(home: Home, query: Mapping[str, Any]) -> dict[str, Any]:
    before, step, store = _named(home, query)
    after = find_snapshot(home, query["after"], query["job"])
    StateShape(after).check_name(step, store)
    limit = int(query["limit"])
    with held(before) as one, held(after) as other:
        first, second = StateReader(_spark(one), one), StateReader(_spark(other), other)
        counts, rows = diff_states(
            first.frame(step, store),
            second.frame(step, store),
            limit=limit,
            apart=first.shape.apart(step, store),
        )
    truncated = sum(counts.values()) > len(rows)
    return {"before": before.name, "after": after.name, "counts": counts, "rows": rows,
            "truncated": truncated}  # fmt: skip


def _verify(home: Home, query: Mapping[str, Any]) -> dict[str, Any]:
    snapshot = find_snapshot(home, query["snapshot"], query["job"])
    with held(snapshot) as kept:
        found = [{"file": p.file, "problem": p.why} for p in verify_data(_spark(kept), kept)]
        files = len(kept.closure().files) if not found else 0
    return {"files": files, "problems": found}


def _named(home: Home, query: Mapping[str, Any]) -> tuple[Snapshot, str, str]:
    snapshot = find_snapshot(home, query["snapshot"], query["job"])
    step, store = str(query["step"]), str(query["state"])
    shape = StateShape(snapshot)
    shape.check_name(step, store)  # what the graph knows is checked before Spark starts
    if query.get("key") is not None:
        shape.check_key(step, query["key"])
    return snapshot, step, store


def _spark(snapshot: Snapshot) -> Any:
    given = json.loads(os.environ.get(CONF, "{}"))
    spark = get_session(parallelism=1, master=_MASTER, conf={**given, **_CONF})
    reach(spark, snapshot)
    return spark


_WORK: dict[str, Callable[[Home, Mapping[str, Any]], dict[str, Any]]] = {
    "rows": _rows,
    "diff": _diff,
    "verify": _verify,
}

if __name__ == "__main__":
    main()
