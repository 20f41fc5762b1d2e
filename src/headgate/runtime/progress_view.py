"""How a running job is, in a notebook: one small table, from the home alone."""

from __future__ import annotations

from html import escape

from headgate.base.durations import format_duration
from headgate.base.secrets import redact
from headgate.home.layout import JobHome
from headgate.home.times import now
from headgate.runtime.status import JobStatus, job_status

_CELL = "style='text-align:left;padding:2px 12px 2px 0'"


def progress_line(job: JobHome, *, running: bool, error: BaseException | None = None) -> str:
    """How the job is, in one line."""
    status = job_status(job)
    parts = [f"job {status.name}: {_state(status, running, error)}"]
    parts += [f"{name} {value}" for name, value in _facts(status)]
    return ", ".join(parts)


def progress_html(job: JobHome, *, running: bool, error: BaseException | None = None) -> str:
    """How the job is, with its steps, as a notebook shows it."""
    status = job_status(job)
    rows = [("job", status.name), ("state", _state(status, running, error)), *_facts(status)]
    if error is not None:
        rows.append(("error", redact(str(error))))
    html = _table([[name, value] for name, value in rows])
    if status.figures is not None and status.checkpoint is not None:
        steps = [
            [s.name, s.kind, _count(s.totals.records_in), _count(s.totals.records_out)]
            for s in status.figures.steps
            if s.is_counted
        ]
        html += _table(steps, head=["step", "kind", "in", "out"])
    return f"<div>{html}</div>"


def _state(status: JobStatus, running: bool, error: BaseException | None) -> str:
    """As the handle knows it: before the lease is taken, and if the start itself has failed."""
    if status.lease is None and running:
        return "INITIALIZING"
    return "FAILED" if status.lease is None and error is not None else status.state


def _facts(status: JobStatus) -> list[tuple[str, str]]:
    found = []
    if status.figures is not None:
        found.append(("run", status.figures.run.id))
    checkpoint = status.checkpoint
    if checkpoint is not None:
        text = f"ck:{checkpoint.id}"
        if checkpoint.completed_at is not None:
            text += f" {format_duration(now() - checkpoint.completed_at)} ago"
        found.append(("checkpoint", text))
    figures = status.figures
    if figures is not None and figures.newest is not None:
        found.append(("records in", f"{figures.records_in or 0:,}"))
        found.append(("records out", f"{figures.records_out or 0:,}"))
        found.append(("behind", f"{figures.behind or 0:,}"))
    if status.records_in_per_second:
        found.append(("records a second", f"{status.records_in_per_second:,.0f}"))
    found += [("waiting for", f"{wait.subject}: {wait.why}") for wait in status.waiting]
    return found


def _table(rows: list[list[str]], head: list[str] | None = None) -> str:
    lines = []
    if head:
        lines.append("<tr>" + "".join(f"<th {_CELL}>{escape(c)}</th>" for c in head) + "</tr>")
    for row in rows:
        lines.append("<tr>" + "".join(f"<td {_CELL}>{escape(c)}</td>" for c in row) + "</tr>")
    return f"<table>{''.join(lines)}</table>"


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
