"""What an exception from Spark says, and the reason in it."""

from __future__ import annotations

from headgate.failures import explain


def explain_failure(error: BaseException) -> tuple[str, str, str | None, str | None]:
    """A failure as (reason, sentence, step, remedy), from all that Spark said about it."""
    failure = explain(failure_text(error))
    return failure.reason.name, failure.sentence, failure.step, failure.remedy


def failure_text(error: BaseException) -> str:
    """All that an exception says: its text, the JVM's trace, and its causes."""
    parts = [str(error), str(getattr(error, "_stackTrace", "") or "")]
    cause = getattr(error, "_cause", None) or error.__cause__
    if isinstance(cause, BaseException):
        parts.append(failure_text(cause))
    return "\n".join(parts)
