"""The reasons why a job fails, each with a text, whether trying again can help, and a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """A reason with a text, whether trying again can help, and what to do."""

    MALFORMED_RECORD = (
        "a record does not parse",
        False,
        "fix the producer, or set such records aside with malformed='side'",
    )
    TOPIC_MISSING = (
        "a topic does not exist",
        False,
        "create it with `headgate topic create`",
    )
    OFFSET_GONE = (
        "records that the job has not read yet are gone from the topic",
        False,
        "restore the records, or continue without them: on_data_loss='continue' (Kafka, Pulsar) or "
        "--fresh",
    )
    TOPIC_REPLACED = (
        "a topic that the job reads was deleted and recreated",
        False,
        "start from scratch with --fresh, or let the source read the new topic from its beginning: "
        "on_data_loss='continue' (Kafka, Pulsar); an earlier snapshot does not help, because its "
        "offsets also refer to the old topic",
    )
    TOPIC_DAMAGED = ("a topic's files are damaged", False, "restore them")
    USER_CODE = (
        "the job's own Python code raised an exception",
        False,
        "fix the code, then start the job again",
    )
    USER_CODE_IO = (
        "the job's own Python code could not reach a file or another system",
        True,
        "check that the file or system is there and that the job has access to it",
    )
    PYTHON_WORKER = (
        "a Spark Python worker died without an error: it was killed, or a library crashed it",
        True,
        "check whether the system killed it for using too much memory (dmesg), and if so give it "
        "more; for a crash, add -- --conf spark.python.worker.faulthandler.enabled=true",
    )
    EXPRESSION = ("an expression in the job failed on a row", False, "correct the expression")
    STATE_SCHEMA = (
        "the state no longer fits the job",
        False,
        "go back to the old schema, or start from scratch with --fresh",
    )
    STATE_FILES = (
        "a state file is damaged or missing",
        False,
        "start again from an earlier snapshot",
    )
    OUT_OF_MEMORY = (
        "Spark ran out of memory",
        True,
        "give it more, for example with -- --conf spark.driver.memory=4g",
    )
    EXECUTOR_LOST = ("executors were lost too often", True, "check the executors' logs")
    DISK_FULL = (
        "a disk is full",
        True,
        "free up space on it; a job with a restart strategy continues by itself",
    )
    READ_ONLY = (
        "a disk is read-only",
        True,
        "make it writable; a job with a restart strategy continues by itself",
    )
    STORAGE = (
        "files could not be written or read",
        True,
        "check the disk or file system, and this user's permissions there",
    )
    STORE_UNREACHABLE = (
        "the object store could not be reached, or a request to it failed",
        True,
        "check that the bucket exists, and that the driver and the executors can reach it: "
        "headgate doctor --live",
    )
    STORE_DENIED = (
        "the object store denied the job access",
        False,
        "check the credentials of the driver and the executors, and their permissions to list, "
        "read, write and delete objects",
    )
    DRIVER_GONE = ("Spark's JVM is gone", True, "start again; Spark's log may say why")
    HOME_UNSEEN = (
        "an executor does not see the home",
        False,
        "put the home on a shared file system that is mounted at the same path on all machines, "
        "or on an object store",
    )
    LEASE_LOST = (
        "another process has taken over the job",
        False,
        "use headgate show to see which process is driving it now",
    )
    BATCH_TAKEN = (
        "another process has planned or finished this batch",
        True,
        "use headgate show to see which process is driving the job; the next start continues from "
        "there",
    )
    CRASH_ASKED = ("a test requested a crash", False, "start again")
    RECORD_TOO_LARGE = (
        "a record is larger than the broker accepts",
        False,
        "make it smaller, or raise the topic's max.message.bytes and the sink's max.request.size "
        "(Kafka), or the brokers' maxMessageSize (Pulsar)",
    )
    BROKER_UNREACHABLE = (
        "the broker does not answer",
        True,
        "check that it is running and can be reached from the driver and the executors",
    )
    FETCH_TIMEOUT = (
        "records did not arrive from the broker in time",
        True,
        "check whether the broker or the network to it is overloaded; smaller batches "
        "(max_records) put less load on both",
    )
    NOT_AUTHORISED = (
        "the broker denied the job access",
        False,
        "check the credentials in the options, and the permissions for topics, groups and "
        "transactions",
    )
    PRODUCER_FENCED = (
        "another process is writing under the job's name",
        True,
        "check that no second copy of the job is running from a different home",
    )
    SINK_AHEAD = (
        "a sink already has this batch number, with different rows",
        False,
        "another copy of this home has written there: run only one of them, and start it with "
        "--from, --fresh or --accept-sink-position",
    )
    OUTPUT_TAKEN = (
        "a job with the same name in a different home writes there",
        False,
        "stop that job and start this one with --take-over, or start this one under a different "
        "--name",
    )
    FOLDER_TAKEN = (
        "another sink writes its files to the folder",
        False,
        "give each sink a folder of its own",
    )
    DELTA_SCHEMA = (
        "the rows do not fit the Delta table",
        False,
        "select and cast the columns to match the table; evolve=True adds missing ones to it",
    )
    DELTA_PATH = (
        "a Delta table cannot be written or read",
        True,
        "check that the driver and the executors can see its path and may write to it",
    )
    DELTA_CONFLICT = (
        "another writer changed the Delta table at the same time",
        True,
        "start the job again if it has not restarted: the batch is then written to the table as it "
        "is now",
    )
    ICEBERG_TABLE = (
        "the rows cannot be written to the Iceberg table",
        False,
        "select and cast the columns to match the table; evolve=True adds missing ones to it",
    )
    ICEBERG_CATALOG = (
        "an Iceberg catalog or the files of its table cannot be reached",
        True,
        "check the sink's options: the driver needs access to the catalog, and both the driver and "
        "the executors need access to the files",
    )
    ICEBERG_CONFLICT = (
        "another writer changed the Iceberg table at the same time",
        True,
        "start the job again if it has not restarted: the batch is then written to the table as it "
        "is now",
    )
    BATCH_TIMEOUT = (
        "a batch took longer than Checkpoints.timeout allows",
        True,
        "raise the timeout, or take fewer records per batch with max_records",
    )
    TRANSACTION_TIMEOUT = (
        "a batch took longer than its Kafka transactions are allowed to last",
        True,
        "raise the sinks' transaction_timeout, or take fewer records per batch with max_records",
    )
    KAFKA = (
        "Kafka refused a request",
        True,
        "run with --debug to see everything that Kafka reported",
    )
    REGISTRY_UNREACHABLE = (
        "the schema registry does not answer",
        True,
        "check that it is running and can be reached from the driver and the executors",
    )
    REGISTRY_REFUSED = (
        "the schema registry refused a request",
        False,
        "check its address, registry_credentials, and the permissions for the subject",
    )
    SCHEMA_MISFIT = (
        "the schema of a sink's rows is not compatible with its subject",
        False,
        "keep the columns compatible, write to a different subject, or change the subject's "
        "compatibility level",
    )
    DEDUPLICATION_OFF = (
        "a Pulsar topic does not drop duplicates, so the job's sink cannot be exactly once",
        False,
        "turn on deduplication for the topic or its namespace, or set delivery='at_least_once'",
    )
    PULSAR = (
        "Pulsar refused a request",
        True,
        "run with --debug to see everything that Pulsar reported",
    )
    DATABASE_UNREACHABLE = (
        "the database does not answer",
        True,
        "check that it is running and can be reached from the driver and the executors",
    )
    DATABASE_DENIED = (
        "the database denied the job access",
        False,
        "check user, password and permissions: the job writes to its own tables and to "
        "headgate_batches and headgate_outputs, and creates the latter two if they do not exist",
    )
    TABLE_MISSING = (
        "a table does not exist",
        False,
        "create it, or let the sink do so with create=True",
    )
    TABLE_UNFIT = (
        "a table does not fit the rows of its sink",
        False,
        "alter the table, or cast, rename or drop columns upstream of the sink",
    )
    CONSTRAINT_VIOLATED = (
        "a row violates a constraint of its table",
        False,
        "correct such rows upstream of the sink, or change the constraint",
    )
    VALUE_REFUSED = (
        "a value does not fit its column",
        False,
        "widen the column, or correct the value upstream of the sink",
    )
    DATABASE = (
        "the database refused a statement",
        True,
        "run with --debug to see everything that it reported",
    )
    STEP_TWICE = ("a step would have run twice", False, "report this: it is a bug in Headgate")
    UNKNOWN = (
        "the query failed",
        True,
        "run with --debug to see everything that Spark reported",
    )

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
