"""One failure or crash of a job, as the page of exceptions and REST show it."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.ui.model.view import FlinkTime, View, json_name


@dataclass(frozen=True)
class ExceptionView(View):
    """One failure."""

    timestamp: FlinkTime
    run: str
    exception_name: str = field(metadata=json_name("exceptionName"))
    """The reason, one of an enum."""
    message: str
    task_name: str | None = field(metadata=json_name("taskName"))
    """The step."""
    location: str | None
    """The innermost line of the user's code."""
    stacktrace: str
    """Lines of the user's code, outermost first; Spark's own are in the driver's log."""
    frames: tuple[str, ...]
    remedy: str | None
    batch: int | None
    restart: int | None
    """The number of the restart that followed."""
    next: str
    """What happened next, in a sentence."""
