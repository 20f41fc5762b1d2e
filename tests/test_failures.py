"""Failures as people are told of them, from what Spark and the kernel say."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError

from headgate import jvm
from headgate.base.coded import coded_line
from headgate.connectors.broker_probe import Service
from headgate.failures import Reason, explain
from headgate.runtime.blame import Read, name_broker

MALFORMED = (
    'HEADGATE {"code":"MALFORMED_RECORD","step":"orders","topic":"log:o","partition":1,"offset":7,'
    '"reason":"not valid JSON","text":"{\\"a\\": {broken}"}'
)


@pytest.mark.parametrize(
    "behind", ["", "\n\tat org.apache.Foo", " SQLSTATE: 39000", " SQLSTATE: 1\nx"]
)
def test_a_malformed_record_is_named_with_its_place(behind: str) -> None:
    failure = explain(f"Job aborted: org.apache.X: {MALFORMED}{behind}")
    assert failure.reason is Reason.MALFORMED_RECORD
    assert failure.step == "orders"
    assert "log:o partition 1 offset 7" in failure.sentence
    assert "broken" in failure.sentence and "SQLSTATE" not in failure.sentence


def test_a_state_schema_that_does_not_fit_is_no_mystery() -> None:
    failure = explain("[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided ... SQLSTATE: XXKST")
    assert failure.reason is Reason.STATE_SCHEMA and not failure.reason.retryable


def test_the_users_own_frame_comes_first() -> None:
    text = (
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "/x/pyspark/worker.py", line 1, in main\n    f()\n'
        '  File "/home/me/job.py", line 12, in double\n    return 1 / 0\n'
        "ZeroDivisionError: division by zero\n\tat org.apache.Foo"
    )
    failure = explain(text)
    assert failure.reason is Reason.USER_CODE
    assert "ZeroDivisionError: division by zero" in failure.sentence
    assert "/home/me/job.py" in failure.sentence and "12" in failure.sentence


def python_error(last: str) -> str:
    return (
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        f'  File "/home/me/job.py", line 12, in call\n    get()\n{last}\n\tat org.apache.Foo'
    )


@pytest.mark.parametrize(
    "last",
    [
        "ConnectionError: refused",
        "ConnectionRefusedError: [Errno 111]",
        "TimeoutError",
        "FileNotFoundError: [Errno 2] no.csv",
        "requests.exceptions.ReadTimeout: 3 s",
        "urllib.error.URLError: <urlopen error>",
        "socket.gaierror: [Errno -2]",
    ],
)
def test_code_that_cannot_reach_something_may_be_tried_again(last: str) -> None:
    failure = explain(python_error(last))
    assert failure.reason is Reason.USER_CODE_IO and failure.reason.retryable
    assert failure.sentence == f"{last} at /home/me/job.py:12"
    assert failure.frames == ("/home/me/job.py:12",)


@pytest.mark.parametrize("last", ["ValueError: TimeoutError", "KeyError: 'OSError'", "MyError: x"])
def test_other_errors_of_the_code_may_not(last: str) -> None:
    failure = explain(python_error(last))
    assert failure.reason is Reason.USER_CODE and not failure.reason.retryable


def test_a_lost_lease_is_never_worth_a_retry() -> None:
    line = coded_line("LEASE_LOST", {"text": "process 7 on host has taken over the lease"})
    failure = explain(f"Job aborted: {line}\n\tat org.apache.Foo")
    assert failure.reason is Reason.LEASE_LOST and not failure.reason.retryable
    assert failure.sentence == "process 7 on host has taken over the lease"


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError("[Errno 111] Connection refused"),
        RuntimeError("Job 3 cancelled because SparkContext was shut down"),
    ],
)
def test_a_jvm_that_is_gone_says_nothing_about_it(error: Exception) -> None:
    failure = jvm.explain_failure(error)
    assert failure.reason is Reason.DRIVER_GONE
    assert failure.sentence == "Spark's JVM is gone"


@pytest.mark.parametrize(
    ("line", "reason", "said"),
    [
        (
            'HEADGATE {"code":"TOPIC_MISSING","system":"kafka","topic":"t","servers":"h:1"}',
            Reason.TOPIC_MISSING,
            "there is no topic kafka://h:1/t",
        ),
        (
            'HEADGATE {"code":"TOPIC_MISSING","system":"pulsar","topic":"t","servers":"pulsar://h:1"}',
            Reason.TOPIC_MISSING,
            "there is no topic pulsar://h:1/t",
        ),
        (
            'HEADGATE {"code":"DEDUPLICATION_OFF","system":"pulsar","topic":"t"}',
            Reason.DEDUPLICATION_OFF,
            "does not drop duplicates",
        ),
        (
            'HEADGATE {"code":"PULSAR","system":"pulsar","text":"TopicTerminatedException: gone"}',
            Reason.PULSAR,
            "Pulsar refused a request: TopicTerminatedException: gone",
        ),
    ],
)
def test_a_brokers_failure_is_told_with_its_address(line: str, reason: Reason, said: str) -> None:
    failure = explain(f"Job aborted: org.apache.X: {line}\n\tat org.apache.Foo")
    assert failure.reason is reason
    assert said in failure.sentence
    assert not Reason.DEDUPLICATION_OFF.retryable and Reason.PULSAR.retryable


WORKER = """\
Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost \
task 0.0 in stage 1.0 (TID 2) (host executor driver): org.apache.spark.SparkException: Python \
worker exited unexpectedly (crashed). Consider setting 'spark.python.worker.faulthandler.enabled'
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(P.scala:704)
\tat org.apache.spark.sql.headgate.steps.process.ProcessTask.work(ProcessTask.scala:202)
Caused by: {cause}
\tat org.apache.spark.api.python.BasePythonRunner$ReaderInputStream.read(PythonRunner.scala:868)
"""


@pytest.mark.parametrize(
    "cause", ["java.io.EOFException", "java.net.SocketException: Connection reset"]
)
def test_a_killed_worker_is_seen_in_a_trace(cause: str) -> None:
    """What Spark 4.2 said when workers of process functions were killed with -9."""
    failure = explain(WORKER.format(cause=cause))
    assert failure.reason is Reason.PYTHON_WORKER and failure.reason.retryable
    assert failure.sentence == Reason.PYTHON_WORKER.text


def test_a_pipe_that_breaks_on_the_way_to_a_worker_is_no_failure_of_files() -> None:
    frames = "\tat java.base/sun.nio.ch.IOUtil.write(IOUtil.java:102)\n"
    written = "\tat org.apache.spark.api.python.BasePythonRunner$ReaderInputStream.write(P.scala:9)"
    failure = explain(f"Lost task: java.io.IOException: Broken pipe\n{frames}{written}")
    assert failure.reason is Reason.PYTHON_WORKER and failure.step is None
    other = explain(f"Lost task: java.io.IOException: Broken pipe\n{frames}\tat org.apache.Foo")
    assert other.reason is Reason.STORAGE


FROZEN = """\
Job aborted due to stage failure: Lost task 0.0: \
org.apache.kafka.common.errors.TimeoutException: Timeout of 20000ms expired before the position \
for partition orders-0 could be determined
Caused by: org.apache.kafka.common.errors.TimeoutException: Timeout of 20000ms expired before the \
position for partition orders-0 could be determined
"""
SLOW = (Path(__file__).parent / "fixtures" / "failures" / "fetch_timeout.txt").read_text()
READS = [
    Read(name, f"kafka://{host}/{name}", Service("kafka", (host,)))
    for name, host in (("orders", "a:1"), ("users", "b:2"))
]


@pytest.mark.parametrize("text", [FROZEN, SLOW])
def test_a_broker_that_is_silent_is_named_with_the_topic(text: str) -> None:
    """What Spark 4.2 said when its broker was frozen in the middle of a batch, or slow."""
    named = name_broker(explain(text), READS, lambda service: service.hosts == ("b:2",))
    assert named.reason is Reason.BROKER_UNREACHABLE and named.step == "orders"
    assert named.sentence.startswith("the broker does not answer (kafka://a:1/orders of orders): ")


def test_a_broker_that_answers_is_slow_and_not_silent() -> None:
    assert explain(SLOW).reason is Reason.FETCH_TIMEOUT
    named = name_broker(explain(SLOW), READS[:1], lambda service: True)
    assert named.reason is Reason.FETCH_TIMEOUT and named.reason.retryable
    assert named.sentence.startswith(
        "records did not arrive from the broker in time (kafka://a:1/orders of orders): "
    )
    assert "Cannot fetch record for offset 0" in named.sentence
    both = name_broker(explain(SLOW), READS, lambda service: True)
    assert (
        both.step is None and "(one of kafka://a:1/orders of orders, kafka://b:2" in both.sentence
    )


def test_a_failure_that_names_its_broker_is_left_as_it_is() -> None:
    said = 'HEADGATE {"code":"BROKER_UNREACHABLE","system":"kafka","servers":"h:1","text":"x"}'
    failure = explain(said)
    assert name_broker(failure, READS, lambda service: False) is failure
    missing = explain(coded_line("TOPIC_MISSING", {"path": "data/orders"}))
    assert name_broker(missing, READS, lambda service: False) is missing
