"""``headgate stop``, ``cancel``, ``restart`` and ``op``: ask a running job, and wait."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.base.durations import format_duration, parse_duration
from headgate.base.errors import ExitCode, HeadgateError, RefusedError
from headgate.cli.common import HELP, Ui, command
from headgate.cli.completion import job_names
from headgate.cli.tables import local_time, size
from headgate.home.layout import JobHome
from headgate.home.operations import OperationRecord, Operations, find_operation
from headgate.runtime.lease import is_live

_POLL_SECONDS = 0.2
_DOING = {
    "stop": "stopping",
    "cancel": "cancelling",
    "restart": "restarting",
    "savepoint": "making a savepoint of",
    "checkpoint": "making a checkpoint of",
}
_LATER = ("savepoint", "checkpoint")
"""What the next driver does if this one ends before it."""

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB", help="The job, or a unique prefix of its name.", autocompletion=job_names
    ),
]
OpArgument = Annotated[str, typer.Argument(metavar="OP", help="The operation's id, or its start.")]
WaitOption = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is done.")]
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="TIME", help="Wait at most this long, such as 30s; then exit 4."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    command(app, "stop")(stop_job)
    command(app, "cancel")(cancel_job)
    command(app, "restart")(restart_job)
    operations = typer.Typer(
        help="Requested operations of a job: show, wait, cancel.",
        no_args_is_help=True,
        context_settings=HELP,
    )
    command(operations, "show")(show_op)
    command(operations, "wait")(wait_op)
    command(operations, "cancel")(cancel_op)
    app.add_typer(operations, name="op")


def stop_job(
    ui: Ui,
    job: JobArgument,
    savepoint: Annotated[
        bool, typer.Option("--savepoint/--no-savepoint", help="Create a savepoint at the end.")
    ] = True,
    drain: Annotated[
        bool, typer.Option("--drain", help="First read all available input and close all windows.")
    ] = False,
    label: Annotated[
        str | None, typer.Option("--label", metavar="LABEL", help="The savepoint's name.")
    ] = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = None,
) -> None:
    """Stop a job after its current batch, with a savepoint."""
    if label is not None and not savepoint:
        raise typer.BadParameter("--label and --no-savepoint exclude each other")
    home = ui.home.find(job)
    args: dict[str, Any] = {"savepoint": savepoint, "drain": drain}
    if label is not None:
        args["label"] = label
    record = request_and_wait(ui, home, "stop", args, wait=wait, timeout=timeout)
    ui.data(record.to_json(), lambda: _savepoint_line(record))
    if record.state == "done":
        ui.say(_start_again(home, record))


def cancel_job(
    ui: Ui,
    job: JobArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = None,
) -> None:
    """Stop a job immediately, in the middle of its batch and without a savepoint."""
    home = ui.home.find(job)
    _driver(home)
    if not yes:
        if not sys.stdin.isatty():
            raise RefusedError(
                f"job '{home.name}' would be cancelled in the middle of a batch",
                remedy="pass --yes, or end it in order with headgate stop",
            )
        typer.confirm(f"cancel {home.name} in the middle of its batch?", abort=True, err=True)
    record = request_and_wait(ui, home, "cancel", {}, wait=wait, timeout=timeout)
    ui.data(record.to_json(), lambda: "")


def restart_job(
    ui: Ui,
    job: JobArgument,
    snapshot: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SNAP",
            help="Restart from this snapshot, not from the savepoint of the stop.",
        ),
    ] = None,
    parallelism: Annotated[
        int | None,
        typer.Option("--parallelism", metavar="N", min=1, help="Number of state partitions."),
    ] = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = None,
) -> None:
    """Stop a job with a savepoint and restart it from there, in the same process."""
    home = ui.home.find(job)
    args = {"from": snapshot, "parallelism": parallelism}
    given = {name: value for name, value in args.items() if value is not None}
    record = request_and_wait(ui, home, "restart", given, wait=wait, timeout=timeout)
    ui.data(record.to_json(), lambda: _savepoint_line(record))
    if record.state == "done" and record.result:
        ui.say(f"{home.name} goes on in run {record.result['run']}")


def show_op(ui: Ui, op: OpArgument) -> None:
    """Show the state or result of an operation."""
    _, record = find_operation(ui.home, op)
    ui.data(record.to_json(), lambda: _text(record))


def wait_op(ui: Ui, op: OpArgument, timeout: TimeoutOption = None) -> None:
    """Wait until an operation has finished; exit 1 if it failed, 4 after --timeout."""
    operations, record = find_operation(ui.home, op)
    ended = _wait(ui, operations, record, timeout)
    ui.data(ended.to_json(), lambda: _text(ended))


def cancel_op(ui: Ui, op: OpArgument) -> None:
    """Cancel an operation that the job has not started yet."""
    operations, record = find_operation(ui.home, op)
    before = record.state
    record = operations.cancel(record.id)
    if record.state != "cancelled":
        raise RefusedError(
            f"operation {record.id} has ended already ({record.state})",
            remedy=f"see headgate op show {record.id}",
        )
    ui.say(f"{record.id} was taken back" if before == "requested" else f"{record.id} was already")
    ui.data(record.to_json(), lambda: _text(record))


def request_and_wait(
    ui: Ui,
    job: JobHome,
    kind: str,
    args: Mapping[str, Any],
    *,
    wait: bool = True,
    timeout: str | None = None,
) -> OperationRecord:
    """Ask a job's driver for an operation and stay until it is done.

    Gives the record, which is done, or still requested without ``wait``. Refused if no driver
    lives; raises if it failed. When the time is up the record is printed and the exit code is 4.
    """
    if timeout is not None:
        parse_duration(timeout, what="--timeout")
    operations = Operations(job)
    record = operations.request(kind, args, driver=_driver(job))
    ui.say(f"{_DOING[kind]} {job.name} … operation {record.id}")
    if not wait:
        ui.say(f"wait for it with: headgate op wait {record.id}")
        return record
    return _wait(ui, operations, record, timeout)


def _driver(job: JobHome) -> str:
    """The token of the job's live driver."""
    lease = job.read().lease
    if lease is None or not is_live(lease):
        raise RefusedError(
            f"job '{job.name}' is not running, so nothing can carry out the request",
            remedy=f"see how it ended with headgate show {job.name}",
        )
    return lease.owner.token


def _wait(
    ui: Ui, operations: Operations, record: OperationRecord, timeout: str | None
) -> OperationRecord:
    limit = parse_duration(timeout, what="--timeout").total_seconds() if timeout else None
    began = time.monotonic()
    try:
        with _spinner(ui, f"{_DOING[record.kind]} {record.job} ({record.id})"):
            while not (record.ended and _left(operations.job, record)):
                if limit is not None and time.monotonic() - began > limit:
                    raise _not_in_time(ui, record, f"not finished after {timeout}")
                if not record.ended and not is_live(operations.job.read().lease):
                    record = operations.read(record.id)  # its last word may be newer than ours
                    if not record.ended:
                        raise _abandoned(ui, operations, record)
                time.sleep(_POLL_SECONDS)
                record = operations.read(record.id)
    except KeyboardInterrupt:
        ui.say(f"\noperation {record.id} goes on; wait for it with: headgate op wait {record.id}")
        raise
    if record.state != "done":
        failed = HeadgateError(
            f"operation {record.id} ({record.kind} of job '{record.job}') "
            f"{'was cancelled' if record.state == 'cancelled' else 'failed'}: {record.message}",
            code="OPERATION",
            remedy=f"see headgate show {record.job}",
        )
        failed.exit_code = ExitCode((record.result or {}).get("exit_code", ExitCode.FAILED))
        raise failed
    return record


def _left(job: JobHome, record: OperationRecord) -> bool:
    """Whether a stopped job's process has let go of it, so that it can be started again."""
    if record.state != "done" or record.kind not in ("stop", "cancel"):
        return True
    lease = job.read().lease
    return lease is None or lease.owner.token != record.driver or not is_live(lease)


def _not_in_time(ui: Ui, record: OperationRecord, why: str) -> typer.Exit:
    ui.say(f"{why}: operation {record.id} is {record.state}")
    ui.say(f"wait on with: headgate op wait {record.id}")
    ui.data(record.to_json(), lambda: record.id)
    return typer.Exit(int(ExitCode.NOT_IN_TIME))


def _abandoned(ui: Ui, operations: Operations, record: OperationRecord) -> Exception:
    """What to say of an operation whose driver has ended without doing it."""
    if record.state == "running":
        return HeadgateError(
            f"the process of job '{record.job}' ended while it carried out {record.id}",
            code="OPERATION",
            remedy=f"see headgate show {record.job}",
        )
    if record.kind in _LATER:
        return _not_in_time(ui, record, f"job '{record.job}' has ended, its next start does it")
    operations.cancel(record.id)
    return RefusedError(
        f"job '{record.job}' ended before it read the request",
        remedy=f"see how with headgate show {record.job}",
    )


@contextmanager
def _spinner(ui: Ui, text: str) -> Iterator[None]:
    if ui.quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    console = Console(stderr=True, no_color=not ui.color, highlight=False)
    with console.status(f"{text}; Ctrl-C leaves it to itself"):
        yield


def _savepoint_line(record: OperationRecord) -> str:
    saved = (record.result or {}).get("savepoint")
    if not saved:
        return record.id if record.state == "requested" else ""
    took = ""
    if record.ended_at and record.started_at:
        took = f"   {format_duration(record.ended_at - record.started_at)}"
    return f"savepoint sp:{saved['label']}   {saved['path']}   {size(saved['bytes'])}{took}"


def _start_again(home: JobHome, record: OperationRecord) -> str:
    result = record.result or {}
    saved, checkpoint = result.get("savepoint"), result.get("checkpoint")
    run = home.run(str(result["run"])) if result.get("run") else None
    file = run.read().code.get("file") if run else None
    app = f"{_near(file)}:{home.name}" if file else "APP"
    at = f" at ck:{checkpoint}" if checkpoint is not None else ""
    last = run.latest_checkpoint() if run else None
    if last is not None and last.event_time is not None and last.event_time.ended:
        return (
            f"{home.name} has stopped{at}, and its event time has ended: rows that come now are "
            f"too late for its windows\nstart it from nothing with: headgate run {app} --fresh"
        )
    text = f"{home.name} has stopped{at}\nstart it again with: headgate run {app}"
    if saved:
        text += f"\nto go back to this point later: headgate run {app} --from sp:{saved['label']}"
    return text


def _near(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _text(record: OperationRecord) -> str:
    lines = [
        f"{record.id}   {record.kind} of {record.job}   {record.state}",
        f"requested    {local_time(record.requested_at)}",
    ]
    if record.started_at:
        lines.append(f"started      {local_time(record.started_at)}")
    if record.ended_at:
        lines.append(f"ended        {local_time(record.ended_at)}")
    if record.args:
        given = "  ".join(f"{name}={value}" for name, value in record.args.items())
        lines.append(f"arguments    {given}")
    result = record.result or {}
    if saved := result.get("savepoint"):
        lines.append(f"savepoint    sp:{saved['label']}   {saved['path']}")
    elif "label" in result:
        lines.append(f"savepoint    sp:{result['label']}   {result['path']}")
    if result.get("checkpoint") is not None:
        lines.append(f"checkpoint   ck:{result['checkpoint']} of run {result['run']}")
    if record.message:
        lines.append(f"message      {record.message}")
    return "\n".join(lines)
