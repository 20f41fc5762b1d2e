"""Failures that arrive as text alone: of tasks whose exception did not reach the driver as one.

A coded line names its code. Of the rest, classes of exceptions and conditions of Spark are looked
for, where a trace has them, and Spark's own words where it has neither for a failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from headgate.base.coded import find_coded
from headgate.failures.python_errors import has_traceback
from headgate.failures.report import PYTHON, Report

_CAUSE = re.compile(r"^Caused by: (?P<cls>[\w.$]+)(?:: (?P<text>.*))?$", re.MULTILINE)
_CLASS = re.compile(r"(?:^|[\s:])(?:[a-z]\w*\.)+([A-Z][\w$]*)(?=[:\s]|$)", re.MULTILINE)
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_]+)*\]")
# How the JVM learns that a worker is gone: from what it reads, or while it writes to it.
_DEAD_WORKER = re.compile(
    r"Python worker exited unexpectedly|Exception: (?:Broken pipe|Connection reset)[^\n]*\n"
    r"(?:\s+at [^\n]*\n){0,12}\s+at org\.apache\.spark\.api\.python\."
)


@dataclass(frozen=True)
class Sign:
    """Something in a text that stands for a code; `classes` are all whose names end so."""

    code: str
    kind: Literal["class", "classes", "condition", "words"]
    text: str


SIGNS: tuple[Sign, ...] = (
    # first: a full disk looks like damaged state to who cannot load any
    Sign("DISK_FULL", "words", "No space left on device"),
    Sign("DISK_FULL", "words", "Disk quota exceeded"),
    Sign("READ_ONLY", "words", "Read-only file system"),
    Sign("READ_ONLY", "class", "ReadOnlyFileSystemException"),
    # and so does a store that cannot be reached
    Sign("STORE_DENIED", "words", "AccessDeniedException: s3a:"),
    Sign("STORE_DENIED", "class", "NoAuthWithAWSException"),
    Sign("STORE_DENIED", "class", "NoAwsCredentialsException"),
    Sign("STORE_UNREACHABLE", "words", "software.amazon.awssdk.core.exception."),
    Sign("STORE_UNREACHABLE", "class", "AWSClientIOException"),
    Sign("STORE_UNREACHABLE", "class", "AWSServiceIOException"),
    Sign("STORE_UNREACHABLE", "class", "AWSServiceThrottledException"),
    Sign("STORE_UNREACHABLE", "class", "AWSStatus500Exception"),
    Sign("STORE_UNREACHABLE", "class", "AWSNoResponseException"),
    Sign("STORE_UNREACHABLE", "class", "AWSApiCallTimeoutException"),
    Sign("STORE_UNREACHABLE", "class", "UnknownStoreException"),
    Sign("BATCH_TAKEN", "condition", "CONCURRENT_STREAM_LOG_UPDATE"),
    Sign("STATE_SCHEMA", "condition", "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"),
    Sign("STATE_SCHEMA", "condition", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"),
    Sign("STATE_SCHEMA", "condition", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"),
    Sign("STATE_FILES", "condition", "CANNOT_LOAD_STATE_STORE"),
    Sign("STATE_FILES", "condition", "CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED"),
    # what Spark's Kafka source says
    Sign("FETCH_TIMEOUT", "words", "Cannot fetch record for offset"),
    Sign("OFFSET_GONE", "condition", "KAFKA_DATA_LOSS"),
    Sign("OFFSET_GONE", "class", "OffsetOutOfRangeException"),
    Sign("TOPIC_MISSING", "class", "UnknownTopicOrPartitionException"),
    Sign("NOT_AUTHORISED", "classes", "AuthorizationException"),
    Sign("NOT_AUTHORISED", "classes", "AuthenticationException"),
    Sign("BROKER_UNREACHABLE", "words", "org.apache.kafka.common.errors.TimeoutException"),
    Sign("BROKER_UNREACHABLE", "words", "No resolvable bootstrap urls"),
    Sign("OUT_OF_MEMORY", "class", "OutOfMemoryError"),
    Sign("EXECUTOR_LOST", "words", "ExecutorLostFailure"),
    Sign("EXPRESSION", "class", "SparkArithmeticException"),
    Sign("EXPRESSION", "class", "SparkNumberFormatException"),
    Sign("EXPRESSION", "class", "SparkDateTimeException"),
    Sign("EXPRESSION", "class", "SparkRuntimeException"),
    Sign("DRIVER_GONE", "words", "SparkContext was shut down"),
    Sign("DRIVER_GONE", "words", "methods on a stopped SparkContext"),
    Sign("STORAGE", "class", "AccessDeniedException"),
    Sign("STORAGE", "class", "AccessControlException"),
    Sign("STORAGE", "words", "Permission denied"),
    Sign("STORAGE", "class", "IOException"),
)


def read_text(text: str) -> Report:
    """What a text says of a failure.

    >>> read_text("Lost task 0.0: java.io.IOException: Input/output error").code
    'STORAGE'
    """
    said = _said(text)
    if (coded := find_coded(text)) is not None:
        return Report(coded.code, coded.fields, said)
    if "PythonException" in text and has_traceback(text):
        return Report(PYTHON, said=said, python=text)
    if _DEAD_WORKER.search(text):
        return Report("PYTHON_WORKER", said=said)
    classes, conditions = set(_CLASS.findall(text)), set(_CONDITION.findall(text))
    tests: dict[str, Callable[[str], bool]] = {
        "class": lambda name: name in classes,
        "classes": lambda end: any(name.endswith(end) for name in classes),
        "condition": lambda name: name in conditions,
        "words": lambda words: words in text,
    }
    code = next((sign.code for sign in SIGNS if tests[sign.kind](sign.text)), None)
    return Report(code, said=said)


def _said(text: str) -> str:
    causes = list(_CAUSE.finditer(text))
    if causes:
        return causes[-1]["text"] or causes[-1]["cls"]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "no reason was given"
