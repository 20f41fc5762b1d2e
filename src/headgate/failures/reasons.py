"""The reasons why a job fails, each with a text, whether trying again can help, and a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
    STORAGE = (
        "files could not be written or read",
        True,
        "check the disk or the file system, and the rights of this user there",
    )
    STORE_UNREACHABLE = (
        "the object store did not do what it was asked",
        True,
        "see that the bucket is there, and that driver and executors reach it: "
        "headgate doctor --live",
    )
    STORE_DENIED = (
        "the object store does not let the job in",
        False,
        "check the credentials of driver and executors, and their rights to list, read, write and "
        "delete objects",
    )
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
    BATCH_TAKEN = (
        "another process has planned or finished this batch",
        True,
        "see who drives the job with headgate show; its next start goes on from what is there",
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
    FOLDER_TAKEN = (
        "another sink writes its files to the folder",
        False,
        "give each sink a folder of its own",
    )
    DELTA_SCHEMA = (
        "the rows do not fit the Delta table",
        False,
        "select and cast the columns as the table has them; evolve=True adds those that it lacks",
    )
    DELTA_PATH = (
        "a Delta table cannot be written or read",
        True,
        "see that its path is there for the driver and the executors, and may be written",
    )
    DELTA_CONFLICT = (
        "another writer changed the Delta table at the same time",
        True,
        "start again if the job has not: the batch is then written to the table as it is now",
    )
    ICEBERG_TABLE = (
        "the rows cannot be written to the Iceberg table",
        False,
        "select and cast the columns as the table has them; evolve=True adds those that it lacks",
    )
    ICEBERG_CATALOG = (
        "an Iceberg catalog or the files of its table cannot be reached",
        True,
        "check the sink's options; the driver needs the catalog, and executors the files, too",
    )
    ICEBERG_CONFLICT = (
        "another writer changed the Iceberg table at the same time",
        True,
        "start again if the job has not: the batch is then written to the table as it is now",
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
    REGISTRY_UNREACHABLE = (
        "the schema registry does not answer",
        True,
        "see that it runs and can be reached from the driver and the executors",
    )
    REGISTRY_REFUSED = (
        "the schema registry refuses a request",
        False,
        "check its address, registry_credentials, and the rights to the subject",
    )
    SCHEMA_MISFIT = (
        "the schema of a sink's rows does not go with that of its subject",
        False,
        "keep the columns compatible, write to another subject, or change its compatibility",
    )
    DEDUPLICATION_OFF = (
        "a Pulsar topic does not drop duplicates, so the job's sink cannot be exactly once",
        False,
        "switch deduplication on for the topic or its namespace, or say delivery='at_least_once'",
    )
    PULSAR = ("Pulsar refused a request", True, "run with --debug to see all that Pulsar said")
    DATABASE_UNREACHABLE = (
        "the database does not answer",
        True,
        "see that it runs and can be reached from the driver and the executors",
    )
    DATABASE_DENIED = (
        "the database does not let the job in",
        False,
        "check user, password and rights: the job writes its tables and headgate_batches and "
        "headgate_outputs, and creates the latter two unless they are there",
    )
    TABLE_MISSING = (
        "a table is not there",
        False,
        "create it, or let the sink do so with create=True",
    )
    TABLE_UNFIT = (
        "a table does not fit the rows of its sink",
        False,
        "alter the table, or cast, rename or drop columns on the way to the sink",
    )
    CONSTRAINT_VIOLATED = (
        "a table's constraint refuses a row",
        False,
        "correct such rows on the way to the sink, or the constraint",
    )
    VALUE_REFUSED = (
        "a value does not fit its column",
        False,
        "widen the column, or correct the value on the way to the sink",
    )
    DATABASE = (
        "the database refused a statement",
        True,
        "run with --debug to see all that it said",
    )
    STEP_TWICE = ("a step would have run twice", False, "report this: it is a defect of Headgate")
    UNKNOWN = ("the query failed", True, "run with --debug to see all that Spark said")

    def __init__(self, text: str, retryable: bool, remedy: str) -> None:
        self.text = text
        self.retryable = retryable
        self.remedy = remedy


@dataclass(frozen=True)
class Failure:
    """A failure as people read it."""

    reason: Reason
    sentence: str
    step: str | None = None
    frames: tuple[str, ...] = ()
    """The lines of the user's own code that it went through, outermost first: file:line."""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return self.reason.remedy
