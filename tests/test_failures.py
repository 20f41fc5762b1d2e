"""Failures as people are told of them, from what Spark and the kernel say."""

from __future__ import annotations

import pytest

from headgate.failures import Reason, explain

MALFORMED = (
    'HEADGATE_MALFORMED {"step":"orders","topic":"log:o","partition":1,"offset":7,'
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
