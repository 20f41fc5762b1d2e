"""Why a job failed: reasons as an enum, found in what Spark and the user's code said."""

from __future__ import annotations

import builtins
import json
import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from headgate.base.secrets import redact, shown
from headgate.failures.places import place_text


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
        "bring the records back, or go on without them: on_data_loss='continue' (Kafka, Pulsar), "
        "--fresh",
    )
    TOPIC_REPLACED = (
        "a topic that the job reads was deleted and made again",
        False,
        "start from nothing with --fresh, or let the source read the new topic from its beginning: "
        "on_data_loss='continue' (Kafka, Pulsar); an earlier snapshot does not help, its offsets "
        "are of the old topic as well",
    )
    TOPIC_DAMAGED = ("a topic's files are not as they should be", False, "restore them")
    USER_CODE = ("the job's own Python code raised", False, "correct the code, then start again")
    USER_CODE_IO = (
        "the job's own Python code could not reach a file or another system",
        True,
        "see that what it reaches for is there and lets it in",
    )
    PYTHON_WORKER = (
        "a Python worker of Spark died without an error: it was killed, or a library crashed it",
        True,
        "see whether the system killed it for its memory (dmesg), and give it more; for a crash "
        "add -- --conf spark.python.worker.faulthandler.enabled=true",
    )
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
    DISK_FULL = (
        "a disk is full",
        True,
        "make room on it; the job goes on by itself if it has a restart strategy",
    )
    READ_ONLY = (
        "a disk is read-only",
        True,
        "mount it for writing; the job goes on by itself if it has a restart strategy",
    )
    STORAGE = ("files could not be written or read", True, "check the disk and its permissions")
    DRIVER_GONE = ("Spark's JVM is gone", True, "start again; the log of Spark may tell why")
    HOME_UNSEEN = (
        "an executor does not see the home",
        False,
        "put the home on a shared file system that is mounted at the same path on all machines, "
        "or on an object store",
    )
    LEASE_LOST = (
        "another process has taken the job over",
        False,
        "see which process drives it now with headgate show",
    )
    CRASH_ASKED = ("a test asked for a crash", False, "start again")
    RECORD_TOO_LARGE = (
        "a record is larger than the broker takes",
        False,
        "make it smaller, or raise max.message.bytes of the topic and max.request.size of the sink "
        "(Kafka), or maxMessageSize of the brokers (Pulsar)",
    )
    BROKER_UNREACHABLE = (
        "the broker does not answer",
        True,
        "see that it runs and can be reached from the driver and the executors",
    )
    FETCH_TIMEOUT = (
        "records did not come from the broker in time",
        True,
        "see whether the broker or the network to it is overloaded; smaller batches need less of "
        "both: max_records",
    )
    NOT_AUTHORISED = (
        "the broker does not let the job in",
        False,
        "check the credentials in the options, and the rights to topics, groups and transactions",
    )
    PRODUCER_FENCED = (
        "another process writes under the job's name",
        True,
        "see that no second copy of the job runs from another home",
    )
    SINK_AHEAD = (
        "a sink has the number of this batch already, for other rows",
        False,
        "another copy of this home has written there: let only one of them run, and start it with "
        "--from, --fresh or --accept-sink-position",
    )
    OUTPUT_TAKEN = (
        "a job of the same name in another home writes there",
        False,
        "stop that one and start with --take-over, or start this one under another --name",
    )
    BATCH_TIMEOUT = (
        "a batch took longer than Checkpoints.timeout allows",
        True,
        "raise the timeout, or take fewer records a batch with max_records",
    )
    TRANSACTION_TIMEOUT = (
        "a batch took longer than its Kafka transactions may last",
        True,
        "raise transaction_timeout of the sinks, or take fewer records a batch with max_records",
    )
    KAFKA = ("Kafka refused a request", True, "run with --debug to see all that Kafka said")
    DEDUPLICATION_OFF = (
        "a Pulsar topic does not drop duplicates, so the job's sink cannot be exactly once",
        False,
        "switch deduplication on for the topic or its namespace, or say delivery='at_least_once'",
    )
    PULSAR = ("Pulsar refused a request", True, "run with --debug to see all that Pulsar said")
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
    frames: tuple[str, ...] = ()
    """The lines of the user's own code that it went through, outermost first: file:line."""

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
    # first: a full disk looks like damaged state to who cannot load any
    ("NoSpaceLeft", Reason.DISK_FULL),
    ("No space left on device", Reason.DISK_FULL),
    ("Disk quota exceeded", Reason.DISK_FULL),
    ("Read-only file system", Reason.READ_ONLY),
    ("ReadOnlyFileSystemException", Reason.READ_ONLY),
    ("STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", Reason.STATE_SCHEMA),
    ("STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", Reason.STATE_SCHEMA),
    ("STATEFUL_OPERATOR_NOT_MATCH", Reason.STATE_SCHEMA),
    ("CANNOT_LOAD_STATE_STORE", Reason.STATE_FILES),
    ("CHECKPOINT_FILE_CHECKSUM", Reason.STATE_FILES),
    # what Spark's Kafka source says
    ("Cannot fetch record for offset", Reason.FETCH_TIMEOUT),
    ("KAFKA_DATA_LOSS", Reason.OFFSET_GONE),
    ("Some data may have been lost", Reason.OFFSET_GONE),
    ("OffsetOutOfRangeException", Reason.OFFSET_GONE),
    ("UnknownTopicOrPartitionException", Reason.TOPIC_MISSING),
    ("AuthorizationException", Reason.NOT_AUTHORISED),
    ("AuthenticationException", Reason.NOT_AUTHORISED),
    ("org.apache.kafka.common.errors.TimeoutException", Reason.BROKER_UNREACHABLE),
    ("No resolvable bootstrap urls", Reason.BROKER_UNREACHABLE),
    ("OutOfMemoryError", Reason.OUT_OF_MEMORY),
    ("ExecutorLostFailure", Reason.EXECUTOR_LOST),
    ("SparkArithmeticException", Reason.EXPRESSION),
    ("SparkNumberFormatException", Reason.EXPRESSION),
    ("SparkDateTimeException", Reason.EXPRESSION),
    ("SparkRuntimeException", Reason.EXPRESSION),
    ("SparkContext was shut down", Reason.DRIVER_GONE),
    ("methods on a stopped SparkContext", Reason.DRIVER_GONE),
    ("AccessDeniedException", Reason.STORAGE),
    ("Permission denied", Reason.STORAGE),
    ("java.io.IOException", Reason.STORAGE),
    ("StorageError", Reason.STORAGE),  # a file of the home, read or written by the driver
    # what a call into the JVM raises here when there is no answer
    ("Py4JNetworkError", Reason.DRIVER_GONE),
    ("Py4JError", Reason.DRIVER_GONE),
    ("ConnectionRefusedError", Reason.DRIVER_GONE),
    ("ConnectionResetError", Reason.DRIVER_GONE),
    ("BrokenPipeError", Reason.DRIVER_GONE),
)
# How the JVM learns that a worker is gone: from what it reads, or while it writes to it.
_DEAD_WORKER = re.compile(
    r"Python worker exited unexpectedly|Exception: (?:Broken pipe|Connection reset)[^\n]*\n"
    r"(?:\s+at [^\n]*\n){0,12}\s+at org\.apache\.spark\.api\.python\."
)
_PROCESS = re.compile(r"~?Process ProcessSpec\(([^,]+),")
# Errors of files and networks: Python's own, and those of libraries, which are named like them.
_PYTHON_IO = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, OSError)
}
_LIBRARY_IO = ("ConnectionError", "Timeout", "TimeoutError", "URLError", "gaierror")


def explain(text: str) -> Failure:
    """Find the reason in everything that was said; secrets are not in what is found.

    >>> explain("... HEADGATE_TOPIC_MISSING data/orders\\n").sentence
    'there is no topic at data/orders'
    """
    found = _explained(text)
    frames = tuple(redact(frame) for frame in found.frames)
    return replace(found, sentence=shown("", found.sentence), frames=frames)


def _explained(text: str) -> Failure:
    if mark := _MARK.search(text):
        return _ours(mark.group(1), mark.group(2).split(" SQLSTATE")[0].strip())
    if "PythonException" in text and (found := _PYTHON.search(text)):
        return _python(found.group("body"), found.group("last").strip())
    if _DEAD_WORKER.search(text):
        return Failure(Reason.PYTHON_WORKER, Reason.PYTHON_WORKER.text, _process_step(text))
    causes = list(_CAUSE.finditer(text))
    said = (causes[-1].group("text") or causes[-1].group("cls")) if causes else _first_line(text)
    for sign, reason in _SIGNS:
        if sign in text and reason is Reason.DRIVER_GONE:
            return Failure(reason, reason.text)  # it said nothing any more
        if sign in text:
            return Failure(reason, f"{reason.text}: {_short(said)}")
    return Failure(Reason.UNKNOWN, _short(said))


def _process_step(text: str) -> str | None:
    """The process step whose worker it was, if only one can be meant."""
    steps = set(_PROCESS.findall(text))
    ours = "org.apache.spark.sql.headgate.steps.process." in text
    return steps.pop() if ours and len(steps) == 1 else None


def _python(body: str, last: str) -> Failure:
    lines = [line.strip() for line in body.splitlines() if 'File "' in line]
    own = [f for f in lines if "/pyspark/" not in f and "/headgate/" not in f]
    places = [
        line.removeprefix("File ").split(", in ")[0].replace('"', "").replace(", line ", ":")
        for line in own or lines
    ]
    reason = _python_reason(last)
    where = f" at {places[-1]}" if places else ""
    return Failure(reason, f"{last}{where}", frames=tuple(places) if own else ())


def _python_reason(last: str) -> Reason:
    """Whether it is worth while to try again, by the last line of a traceback."""
    kind = last.partition(":")[0].rpartition(".")[2]
    network = kind in _PYTHON_IO or kind.endswith(_LIBRARY_IO)
    return Reason.USER_CODE_IO if network else Reason.USER_CODE


def _ours(kind: str, rest: str) -> Failure:
    try:
        # Spark may put its own SQLSTATE behind our JSON
        data: dict[str, Any] = json.JSONDecoder().raw_decode(rest)[0] if rest[:1] == "{" else {}
    except ValueError:
        data = {}
    step = data.get("step")
    if kind == "MALFORMED":
        topic = str(data.get("topic"))
        place = place_text(topic, data.get("offset"))
        where = f"{topic} partition {data.get('partition')} {place}"
        sentence = f"the record at {where} does not parse: {data.get('reason')}; it begins with "
        return Failure(Reason.MALFORMED_RECORD, sentence + repr(str(data.get("text"))[:80]), step)
    if kind == "TOPIC_MISSING":
        return Failure(Reason.TOPIC_MISSING, f"there is no topic at {rest}")
    if kind == "OFFSET_GONE":
        return Failure(Reason.OFFSET_GONE, f"{Reason.OFFSET_GONE.text}: {rest}")
    if kind == "TOPIC_REPLACED":
        return Failure(Reason.TOPIC_REPLACED, _replaced(data), step)
    if kind in ("KAFKA", "PULSAR"):
        return _broker(kind, data)
    if kind == "SINK_AHEAD":
        numbers = f"it has batch {data.get('found')}, and this is batch {data.get('batch')}"
        reason = Reason.SINK_AHEAD
        return Failure(reason, f"{reason.text} ({data.get('sink')}): {numbers}")
    if kind == "OUTPUT_TAKEN":
        reason = Reason.OUTPUT_TAKEN
        return Failure(reason, f"{reason.text}: {data.get('output')} belongs to {data.get('home')}")
    if kind == "HANDLER":
        reason = _python_reason(str(data.get("error")))
        return Failure(reason, str(data.get("text")), step, tuple(data.get("frames") or ()))
    if kind == "BATCH_TIMEOUT":
        reason = Reason.BATCH_TIMEOUT
        return Failure(reason, f"{reason.text}: it was stopped after {data.get('after')}")
    if kind == "STEP_TWICE":
        return Failure(Reason.STEP_TWICE, rest)
    if kind == "HOME_UNSEEN":
        return Failure(Reason.HOME_UNSEEN, _unseen(data))
    if kind == "LEASE_LOST":
        return Failure(Reason.LEASE_LOST, rest or Reason.LEASE_LOST.text)
    if kind == "CRASH":
        return Failure(Reason.CRASH_ASKED, f"{Reason.CRASH_ASKED.text}: {rest}")
    return Failure(Reason.TOPIC_DAMAGED, f"{kind.lower().replace('_', ' ')}: {rest}")


def _unseen(data: dict[str, Any]) -> str:
    who = f"executor {data.get('executor')} on {data.get('host')}"
    path, said = data.get("path"), data.get("text")
    if data.get("kind") == "unwritable":
        return f"{who} cannot write to the home: {path}: {said}"
    if data.get("kind") == "apart":
        return f"{who} does not see the home: what it wrote to {path} is not there for the driver"
    return f"{who} does not see the home: what the driver wrote to {path} is not there ({said})"


def _replaced(data: dict[str, Any]) -> str:
    """
    >>> _replaced({"address": "kafka://h:1/t", "was": "a", "is": "b"})
    'kafka://h:1/t was deleted and made again: it has the id b, and what was read had a'
    """
    was, now = (data.get(part) or "none" for part in ("was", "is"))
    return (
        f"{data.get('address')} was deleted and made again: it has the id {now}, and what was read "
        f"had {was}"
    )


def broker_reason(kind: str, system: Reason) -> Reason:
    """The reason that the kernel names for a failure of Kafka or Pulsar.

    >>> broker_reason("TOPIC_MISSING", Reason.KAFKA).retryable
    False
    """
    return Reason.__members__.get(kind, system)


def _broker(system: str, data: dict[str, Any]) -> Failure:
    reason = broker_reason(str(data.get("kind")), Reason[system])
    topic, servers = data.get("topic"), data.get("servers")
    if system == "KAFKA" and servers and topic:
        servers = f"kafka://{servers}"
    where = f"{servers}/{topic}" if servers and topic else topic or servers
    if reason is Reason.TOPIC_MISSING:
        return Failure(reason, f"there is no topic {where}")
    said = _short(str(data.get("message") or "it said no more"))
    return Failure(reason, f"{reason.text}{f' ({where})' if where else ''}: {said}")


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "no reason was given"


def _short(text: str) -> str:
    text = text.split(" SQLSTATE")[0].strip().rstrip(".")
    return text if len(text) <= 300 else text[:297] + "..."
