"""Types of the parameters in paths and queries: what each may be, and its description."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BeforeValidator, Field, StringConstraints
from pydantic.json_schema import SkipJsonSchema

from headgate.ui.action_request import ActionName
from headgate.ui.model.over_time import LATEST_MS
from headgate.ui.model.snapshot_names import SNAPSHOT_PATTERN

TEXT_LENGTH = 200
"""How long a text may be."""
LABEL_PATTERN = "[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
RUN_PATTERN = "r[0-9]{1,9}"
_ID = 1_000_000_000
_WHOLE = re.compile(r"-?[0-9]{1,15}")


def text(pattern: str = r"[^\x00]+") -> StringConstraints:
    """What a text must match, from its first to its last character."""
    return StringConstraints(min_length=1, max_length=TEXT_LENGTH, pattern=f"^(?:{pattern})$")


def whole_number(value: Any) -> Any:
    """Refuse a text that is not a number in digits."""
    # pydantic alone would take '1_000', ' 5' and '5.0'
    if isinstance(value, str) and not _WHOLE.fullmatch(value):
        raise ValueError("must be a whole number")
    return value


def _true_or_false(value: Any) -> Any:
    # pydantic alone would take 'yes', 'on' and '1'
    if isinstance(value, str) and value not in ("true", "false"):
        raise ValueError("must be true or false")
    return value


# Bounds come first: pydantic describes them only when no function stands below them.
CheckpointNumber = Annotated[int, Field(ge=0, le=_ID), BeforeValidator(whole_number)]
LineCount = Annotated[int, Field(ge=1, le=5000), BeforeValidator(whole_number)]
RowOffset = Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(whole_number)]
RowCount = Annotated[int, Field(ge=1, le=1000), BeforeValidator(whole_number)]
PointCount = Annotated[int, Field(ge=2, le=2000), BeforeValidator(whole_number)]
Milliseconds = Annotated[int, Field(ge=0, le=LATEST_MS), BeforeValidator(whole_number)]
Flag = Annotated[bool, BeforeValidator(_true_or_false)]
Missing = SkipJsonSchema[None]
"""A query parameter that is left out; no text in a query says it, so it is not described."""
LabelText = Annotated[str, text(LABEL_PATTERN)]
RunText = Annotated[str, text(RUN_PATTERN)]
SnapshotText = Annotated[str, text(SNAPSHOT_PATTERN)]
_KeyPart = Annotated[str, text(r"[^=\x00]+(=[^\x00]*)?")]

LABEL = "The savepoint's name, one that is not taken."
RUN = "A run of the job, such as r1; the current one by default."
SNAPSHOT = "latest, ck:17, r1/ck:17 or sp:label."
DRAIN = "First read everything in the sources and close all windows."
SAVEPOINT = "Make a savepoint at the end; true by default."

Job = Annotated[str, text(), Path(description="The name of a job, as in /jobs/overview.")]
Step = Annotated[str, text(), Path(description="The name of a step.")]
Checkpoint = Annotated[CheckpointNumber, Path(description="The number of a checkpoint.")]
Label = Annotated[LabelText, Path(description="The name of a savepoint.")]
Operation = Annotated[str, text(), Path(description="The id of an operation.")]
Action = Annotated[ActionName, Path(description="An action.")]

Run = Annotated[RunText | Missing, Query(description=RUN)]
Limit = Annotated[LineCount, Query(description="At most this many lines.")]
Before = Annotated[
    CheckpointNumber | Missing, Query(description="Only checkpoints with a smaller id.")
]
Snapshot = Annotated[SnapshotText, Query(description=SNAPSHOT)]
OptionalSnapshot = Annotated[SnapshotText | Missing, Query(description=SNAPSHOT)]
OptionalLabel = Annotated[LabelText | Missing, Query(description=LABEL)]
Drain = Annotated[Flag, Query(description=DRAIN)]
Savepoint = Annotated[Flag, Query(description=SAVEPOINT)]
StateName = Annotated[str, text(), Query(description="Which state of the step.")]
KeyParts = Annotated[
    list[_KeyPart],
    Query(description="A part of the key as NAME=VALUE, or NAME alone for null; repeatable."),
]
RangeName = Literal["15m", "1h", "6h", "24h", "7d", "all"]
Range = Annotated[
    RangeName, Query(description="The time up to now, or up to the end of a job that has ended.")
]
Start = Annotated[
    Milliseconds | Missing, Query(description="Where the range begins, instead of `range`.")
]
End = Annotated[Milliseconds | Missing, Query(description="Where it ends; now by default.")]
Points = Annotated[PointCount, Query(description="About so many numbers in each list at most.")]
RowLimit = Annotated[RowCount, Query(description="At most this many rows.")]
Offset = Annotated[RowOffset, Query(description="Leave out so many of the first rows.")]
Search = Annotated[
    str | Missing, text(), Query(description="Letters that it has in its text, of any case.")
]
