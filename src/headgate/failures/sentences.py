"""The reason for each code, and the sentence that its fields make.

A code that is the name of a reason, and that nothing here knows, is followed by what was said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from headgate.failures.places import place_text
from headgate.failures.python_errors import python_failure, python_reason
from headgate.failures.reasons import Failure, Reason
from headgate.failures.report import PYTHON, Report

Fields = Mapping[str, Any]
_BEHIND = re.compile(r" SQLSTATE|\n\s+at |\nDriver stacktrace")


def failure_of(report: Report) -> Failure:
    """A report in words.

    >>> failure_of(Report("TOPIC_MISSING", {"path": "data/orders"})).sentence
    'there is no topic at data/orders'
    """
    code, fields = report.code, report.fields
    if code == PYTHON and (raised := python_failure(report.python)) is not None:
        return raised
    if "system" in fields:
        return _broker(str(code), fields)
    if code in _BY_FIELDS and fields:
        return _BY_FIELDS[code](fields)
    reason = _NAMED.get(code or "") or Reason.__members__.get(code or "", Reason.UNKNOWN)
    if reason in (Reason.DRIVER_GONE, Reason.PYTHON_WORKER):
        return Failure(reason, reason.text)  # it says nothing any more
    said = shortened(report.said or str(fields.get("text") or "no reason was given"))
    return Failure(reason, said if reason is Reason.UNKNOWN else f"{reason.text}: {said}")


def broker_reason(kind: str, system: Reason) -> Reason:
    """The reason that the kernel names for a failure of Kafka or Pulsar.

    >>> broker_reason("TOPIC_MISSING", Reason.KAFKA).retryable
    False
    """
    return Reason.__members__.get(kind, system)


def shortened(text: str) -> str:
    """What was said, in one line, without what Spark and Java put behind it.

    >>> shortened("The key does not fit.\\nIt was INT. SQLSTATE: 42K06\\n\\tat org.Foo.bar")
    'The key does not fit. It was INT'
    """
    text = " ".join(_BEHIND.split(text)[0].split()).rstrip(".")
    return text if len(text) <= 300 else text[:297] + "..."


def _broker(code: str, fields: Fields) -> Failure:
    system = str(fields["system"])
    reason = broker_reason(code, Reason[system.upper()])
    topic, servers = fields.get("topic"), fields.get("servers")
    if servers and topic and "://" not in servers:
        servers = f"{system}://{servers}"
    where = f"{servers}/{topic}" if servers and topic else topic or servers
    if reason is Reason.TOPIC_MISSING:
        return Failure(reason, f"there is no topic {where}")
    said = shortened(str(fields.get("text") or "no details were given"))
    return Failure(reason, f"{reason.text}{f' ({where})' if where else ''}: {said}")


def _malformed(fields: Fields) -> Failure:
    topic = str(fields.get("topic"))
    where = f"{topic} partition {fields.get('partition')} {place_text(topic, fields.get('offset'))}"
    begins = repr(str(fields.get("text"))[:80])
    sentence = f"the record at {where} does not parse: {fields.get('reason')}; it begins with "
    return Failure(Reason.MALFORMED_RECORD, sentence + begins, fields.get("step"))


def _missing(fields: Fields) -> Failure:
    return Failure(Reason.TOPIC_MISSING, f"there is no topic at {fields.get('path')}")


def _gone(fields: Fields) -> Failure:
    has = f"has offsets {fields.get('first')} to {fields.get('end')}"
    where = f"{fields.get('path')} partition {fields.get('partition')} {has}"
    needed = f"and {fields.get('from')} to {fields.get('to')} are needed"
    return Failure(Reason.OFFSET_GONE, f"{Reason.OFFSET_GONE.text}: {where}, {needed}")


def _replaced(fields: Fields) -> Failure:
    was, now = (fields.get(part) or "none" for part in ("was", "is"))
    sentence = (
        f"{fields.get('address')} was deleted and recreated: it has the id {now}, and the topic "
        f"that was read had {was}"
    )
    return Failure(Reason.TOPIC_REPLACED, sentence, fields.get("step"))


def _hole(fields: Fields) -> Failure:
    where = f"{fields.get('path')} partition {fields.get('partition')}"
    between = f"between offset {fields.get('after')} and offset {fields.get('next')}"
    return Failure(Reason.TOPIC_DAMAGED, f"{where} has no records {between}")


def _short_segment(fields: Fields) -> Failure:
    sentence = f"{fields.get('file')} ends before offset {fields.get('offset')}"
    return Failure(Reason.TOPIC_DAMAGED, sentence)


def _bad_segment(fields: Fields) -> Failure:
    sentence = f"{fields.get('file')} has a line without a key at offset {fields.get('offset')}"
    return Failure(Reason.TOPIC_DAMAGED, sentence)


def _ahead(fields: Fields) -> Failure:
    numbers = f"it has batch {fields.get('found')}, and this is batch {fields.get('batch')}"
    reason = Reason.SINK_AHEAD
    return Failure(reason, f"{reason.text} ({fields.get('sink')}): {numbers}")


def _taken(fields: Fields) -> Failure:
    reason = Reason.OUTPUT_TAKEN
    return Failure(reason, f"{reason.text}: {fields.get('output')} belongs to {fields.get('home')}")


def _folder_taken(fields: Fields) -> Failure:
    owner = f"the sink '{fields.get('owner_sink')}' of the job '{fields.get('owner_job')}'"
    sentence = f"{fields.get('path')} has files from another sink: {owner} writes there"
    return Failure(Reason.FOLDER_TAKEN, sentence, fields.get("sink"))


def _lake(reason: Reason) -> Callable[[Fields], Failure]:
    def failure(fields: Fields) -> Failure:
        said = shortened(str(fields.get("text") or "no reason was given"))
        sentence = f"{reason.text} {fields.get('path')}: {said}"
        return Failure(reason, sentence, fields.get("sink"))

    return failure


def _handler(fields: Fields) -> Failure:
    reason = python_reason(str(fields.get("error")))
    frames = tuple(fields.get("frames") or ())
    return Failure(reason, str(fields.get("text")), fields.get("step"), frames)


def _worker(fields: Fields) -> Failure:
    return Failure(Reason.PYTHON_WORKER, Reason.PYTHON_WORKER.text, fields.get("step"))


def _batch_timeout(fields: Fields) -> Failure:
    reason = Reason.BATCH_TIMEOUT
    return Failure(reason, f"{reason.text}: it was stopped after {fields.get('after')}")


def _twice(fields: Fields) -> Failure:
    sentence = f"the step '{fields.get('step')}' would run twice in batch {fields.get('batch')}"
    return Failure(Reason.STEP_TWICE, sentence)


def _lease(fields: Fields) -> Failure:
    return Failure(Reason.LEASE_LOST, str(fields.get("text") or Reason.LEASE_LOST.text))


def _batch_taken(fields: Fields) -> Failure:
    return Failure(
        Reason.BATCH_TAKEN, f"{Reason.BATCH_TAKEN.text}: {fields.get('path')} already exists"
    )


def _crash(fields: Fields) -> Failure:
    at = f"{fields.get('point')} of batch {fields.get('batch')}"
    return Failure(Reason.CRASH_ASKED, f"{Reason.CRASH_ASKED.text}: {at}")


def _registry(reason: Reason) -> Callable[[Fields], Failure]:
    def told(fields: Fields) -> Failure:
        status = f"{fields['status']} for {fields.get('path')}: " if "status" in fields else ""
        said = shortened(str(fields.get("text")))
        return Failure(reason, f"{reason.text} ({fields.get('url')}): {status}{said}")

    return told


def _misfit(fields: Fields) -> Failure:
    return Failure(Reason.SCHEMA_MISFIT, str(fields.get("text")))


def _unseen(fields: Fields) -> Failure:
    who = f"executor {fields.get('executor')} on {fields.get('host')}"
    path, said = fields.get("path"), fields.get("text")
    why = f"does not see the home: the file that the driver wrote to {path} is not there ({said})"
    if fields.get("kind") == "unwritable":
        why = f"cannot write to the home: {path}: {said}"
    if fields.get("kind") == "apart":
        why = f"does not see the home: the driver does not see what the executor wrote to {path}"
    return Failure(Reason.HOME_UNSEEN, f"{who} {why}")


_BY_FIELDS: dict[str | None, Callable[[Fields], Failure]] = {
    "MALFORMED_RECORD": _malformed,
    "TOPIC_MISSING": _missing,
    "OFFSET_GONE": _gone,
    "TOPIC_REPLACED": _replaced,
    "OFFSET_HOLE": _hole,
    "SEGMENT_SHORT": _short_segment,
    "SEGMENT_BAD": _bad_segment,
    "SINK_AHEAD": _ahead,
    "OUTPUT_TAKEN": _taken,
    "FOLDER_TAKEN": _folder_taken,
    "DELTA_SCHEMA": _lake(Reason.DELTA_SCHEMA),
    "DELTA_PATH": _lake(Reason.DELTA_PATH),
    "DELTA_CONFLICT": _lake(Reason.DELTA_CONFLICT),
    "ICEBERG_TABLE": _lake(Reason.ICEBERG_TABLE),
    "ICEBERG_CATALOG": _lake(Reason.ICEBERG_CATALOG),
    "ICEBERG_CONFLICT": _lake(Reason.ICEBERG_CONFLICT),
    "HANDLER": _handler,
    "PYTHON_WORKER": _worker,
    "BATCH_TIMEOUT": _batch_timeout,
    "STEP_TWICE": _twice,
    "LEASE_LOST": _lease,
    "BATCH_TAKEN": _batch_taken,
    "CRASH": _crash,
    "HOME_UNSEEN": _unseen,
    "REGISTRY_UNREACHABLE": _registry(Reason.REGISTRY_UNREACHABLE),
    "SCHEMA_MISFIT": _misfit,
    "REGISTRY_REFUSED": _registry(Reason.REGISTRY_REFUSED),
}
# Codes that have another name than their reason.
_NAMED = {
    PYTHON: Reason.USER_CODE,
    "STATE_TYPE": Reason.STATE_SCHEMA,
    "STATE_KEYS": Reason.STATE_SCHEMA,
    "AVRO_SCHEMA": Reason.EXPRESSION,
    "PROTOBUF_SCHEMA": Reason.EXPRESSION,
    "PROTOBUF_VALUE": Reason.EXPRESSION,
}
