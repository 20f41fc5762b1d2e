"""Why a job failed: reasons as an enum, found in what Spark and the user's code said."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Reason(Enum):
    """A reason with a text, whether trying again can help, and what to do."""

    MALFORMED_RECORD = (
        "a record does not parse",
        False,
        "correct the record's producer, or send such records aside with malformed='side'",
    )
    TOPIC_MISSING = ("a topic is not there", False, "create it with `headgate topic create`")
    OFFSET_GONE = (
        "records that the job has not read yet are gone from the topic",
        False,
        "start from what is there with --fresh, or bring the records back",
    )
    TOPIC_DAMAGED = ("a topic's files are not as they should be", False, "restore them")
    USER_CODE = ("the job's own Python code raised", False, "correct the code, then start again")
    EXPRESSION = ("an expression of the job failed on a row", False, "correct the expression")
    STATE_SCHEMA = (
        "the state does not fit the job any more",
        False,
        "go back to the old schema, or start from nothing with --fresh",
    )
    STATE_FILES = ("a state file is damaged or missing", False, "start again from an earlier state")
    OUT_OF_MEMORY = (
        "Spark ran out of memory",
        True,
        "give it more, for example -- --conf spark.driver.memory=4g",
    )
    EXECUTOR_LOST = ("executors were lost too often", True, "look into the executors' logs")
    STORAGE = ("files could not be written or read", True, "check the disk and its permissions")
    DRIVER_GONE = ("Spark's JVM is gone", True, "start again; the log of Spark may tell why")
    STEP_TWICE = ("a step would have run twice", False, "report this: it is a defect of Headgate")
    UNKNOWN = ("the query failed", True, "run with --debug to see all that Spark said")

    def __init__(self, text: str, retryable: bool, remedy: str) -> None:
        self.text = text
        self.retryable = retryable
        self.remedy = remedy


@dataclass(frozen=True)
class Failure:
    """A failure as people are told of it."""

    reason: Reason
    sentence: str
    step: str | None = None

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return self.reason.remedy


_MARK = re.compile(r"HEADGATE_([A-Z_]+) ([^\n]*)")
_CAUSE = re.compile(r"^Caused by: (?P<cls>[\w.$]+)(?:: (?P<text>.*))?$", re.MULTILINE)
_PYTHON = re.compile(
    r"Traceback \(most recent call last\):\n(?P<body>(?:.*\n)*?)(?P<last>\S.*)", re.M
)
_SIGNS: tuple[tuple[str, Reason], ...] = (
    ("STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", Reason.STATE_SCHEMA),
    ("STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", Reason.STATE_SCHEMA),
    ("STATEFUL_OPERATOR_NOT_MATCH", Reason.STATE_SCHEMA),
    ("CANNOT_LOAD_STATE_STORE", Reason.STATE_FILES),
    ("CHECKPOINT_FILE_CHECKSUM", Reason.STATE_FILES),
    ("OutOfMemoryError", Reason.OUT_OF_MEMORY),
    ("ExecutorLostFailure", Reason.EXECUTOR_LOST),
    ("SparkArithmeticException", Reason.EXPRESSION),
    ("SparkNumberFormatException", Reason.EXPRESSION),
    ("SparkDateTimeException", Reason.EXPRESSION),
    ("SparkRuntimeException", Reason.EXPRESSION),
    ("NoSpaceLeft", Reason.STORAGE),
    ("No space left on device", Reason.STORAGE),
    ("AccessDeniedException", Reason.STORAGE),
    ("Permission denied", Reason.STORAGE),
    ("java.io.IOException", Reason.STORAGE),
    ("Py4JNetworkError", Reason.DRIVER_GONE),
    ("ConnectionRefusedError", Reason.DRIVER_GONE),
)


def explain(text: str) -> Failure:
    """Find the reason in everything that was said.

    >>> explain("... HEADGATE_TOPIC_MISSING data/orders\\n").sentence
    'there is no topic at data/orders'
    """
    if mark := _MARK.search(text):
        return _ours(mark.group(1), mark.group(2).split(" SQLSTATE")[0].strip())
    if "PythonException" in text and (found := _PYTHON.search(text)):
        frames = [line.strip() for line in found.group("body").splitlines() if 'File "' in line]
        own = [f for f in frames if "/pyspark/" not in f and "/headgate/" not in f]
        where = (own or frames or [""])[-1].removeprefix("File ").split(", in ")[0].replace('"', "")
        return Failure(
            Reason.USER_CODE, f"{found.group('last').strip()} at {where.replace(', line ', ':')}"
        )
    causes = list(_CAUSE.finditer(text))
    said = (causes[-1].group("text") or causes[-1].group("cls")) if causes else _first_line(text)
    for sign, reason in _SIGNS:
        if sign in text:
            return Failure(reason, f"{reason.text}: {_short(said)}")
    return Failure(Reason.UNKNOWN, _short(said))


def _ours(kind: str, rest: str) -> Failure:
    try:
        # Spark may put its own SQLSTATE behind our JSON
        data: dict[str, Any] = json.JSONDecoder().raw_decode(rest)[0] if rest[:1] == "{" else {}
    except ValueError:
        data = {}
    step = data.get("step")
    if kind == "MALFORMED":
        where = f"{data.get('topic')} partition {data.get('partition')} offset {data.get('offset')}"
        sentence = f"the record at {where} does not parse: {data.get('reason')}; it begins with "
        return Failure(Reason.MALFORMED_RECORD, sentence + repr(str(data.get("text"))[:80]), step)
    if kind == "TOPIC_MISSING":
        return Failure(Reason.TOPIC_MISSING, f"there is no topic at {rest}")
    if kind == "OFFSET_GONE":
        return Failure(Reason.OFFSET_GONE, f"{Reason.OFFSET_GONE.text}: {rest}")
    if kind == "STEP_TWICE":
        return Failure(Reason.STEP_TWICE, rest)
    return Failure(Reason.TOPIC_DAMAGED, f"{kind.lower().replace('_', ' ')}: {rest}")


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "no reason was given"


def _short(text: str) -> str:
    text = text.split(" SQLSTATE")[0].strip().rstrip(".")
    return text if len(text) <= 300 else text[:297] + "..."
