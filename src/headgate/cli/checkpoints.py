"""``headgate checkpoint``: which checkpoints a run has and keeps, and whether they are whole."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from headgate.base.durations import format_duration
from headgate.base.errors import ExitCode, RefusedError
from headgate.base.still import still
from headgate.cli.common import HELP, Ui, command
from headgate.cli.control import JobArgument, TimeoutOption, WaitOption, request_and_wait
from headgate.cli.event_time import watermark_lines
from headgate.cli.options import SparkArgument, SparkFlags, parse_spark_flags
from headgate.cli.tables import DASH, local_time, number, size, table
from headgate.home.layout import JobHome, RunHome
from headgate.home.model import CheckpointRecord
from headgate.home.read.counts import source_rows
from headgate.home.read.steps import step_figures
from headgate.runtime.lease import is_live
from headgate.snapshots.hold import held
from headgate.snapshots.prune import delete_checkpoint
from headgate.snapshots.savepoints import pin as pin_checkpoint
from headgate.snapshots.savepoints import unpin
from headgate.snapshots.snapshot import Snapshot, find_snapshot, restorable

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="ck:17, r1/ck:17 or latest.")]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    verbs = typer.Typer(
        help="Checkpoints of a job: list, show, pin, verify, delete, create.",
        no_args_is_help=True,
        context_settings=HELP,
    )
    command(verbs, "list")(list_checkpoints)
    command(verbs, "show")(show)
    command(verbs, "pin")(pin)
    command(verbs, "verify")(verify)
    command(verbs, "delete")(delete)
    command(verbs, "create")(create)
    app.add_typer(verbs, name="checkpoint")


def list_checkpoints(
    ui: Ui,
    job: JobArgument,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many.")] = 20,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Show every checkpoint that has a record; reads the whole history."
        ),
    ] = False,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Show this run, such as r1.")
    ] = None,
) -> None:
    """List the checkpoints of a job's current run, newest first."""
    home = ui.home.find(job)
    at = _run(home, run)
    records = at.checkpoints(limit=None if everything else limit)[::-1] if at else []
    kept = set(restorable(at)) if at else set()
    pins = set(at.pinned()) if at else set()
    if not records:
        ui.say(f"job {home.name} has no checkpoint yet")
    ui.data(
        {"job": home.name, "run": at.id if at else None,
         "checkpoints": [_json(r, kept, pins) for r in records]},
        lambda: _list_text(records, kept, pins),
    )  # fmt: skip


def _run(home: JobHome, run: str | None) -> RunHome | None:
    if run is None:
        return home.current()
    found = home.run(run)
    found.read()
    return found


def _list_text(records: list[CheckpointRecord], kept: set[int], pins: set[int]) -> str:
    if not records:
        return ""
    head = [
        "ID", "TYPE", "STATUS", "TRIGGERED", "DURATION", "STATE", "RECORDS", "KEPT", "PINNED",
    ]  # fmt: skip
    rows = []
    for record in records:
        took = (
            format_duration(timedelta(milliseconds=record.duration_ms))
            if record.duration_ms is not None
            else DASH
        )
        rows.append(
            [
                f"ck:{record.id}",
                record.type,
                record.status,
                local_time(record.triggered_at),
                took,
                size(sum(sizes.get("bytes", 0) for sizes in record.state.values())),
                number(source_rows(record)),
                "yes" if record.id in kept else "",
                "yes" if record.id in pins else "",
            ]
        )  # fmt: skip
    return table(head, rows, right=["DURATION", "STATE", "RECORDS"])


def _json(record: CheckpointRecord, kept: set[int], pins: set[int]) -> dict[str, Any]:
    return {
        **record.to_json(),
        "restorable": record.id in kept,
        "pinned": record.id in pins,
    }


def show(ui: Ui, job: JobArgument, id: IdArgument = "latest") -> None:
    """Show one checkpoint: times, counts by step, state and source positions."""
    home = ui.home.find(job)
    snapshot = find_snapshot(ui.home, id, home.name)
    record = snapshot.record
    value = {
        "job": snapshot.job,
        "run": snapshot.run.run,
        "id": snapshot.batch,
        "record": record.to_json() if record else None,
        "parallelism": snapshot.run.parallelism,
    }
    ui.data(value, lambda: _show_text(snapshot))


def _show_text(snapshot: Snapshot) -> str:
    record = snapshot.record
    lines = [f"ck:{snapshot.batch} of run {snapshot.run.run} of {snapshot.job}"]
    if record is None:
        return lines[0] + "   (it has no record)"
    lines[0] += f"   {record.status}   {local_time(record.completed_at)}"
    if record.phases:
        phases = "  ".join(f"{name} {ms:,} ms" for name, ms in record.phases.items())
        lines.append(f"phases    {phases}")
    rows = [
        [
            step.name,
            number(step.batch.records_in),
            number(step.batch.table),
            number(step.batch.records_out),
            number(step.totals.records_in),
            number(step.totals.table),
            number(step.totals.records_out),
            number(step.state_rows),
            size(step.state_bytes),
        ]
        for step in step_figures(snapshot.graph, record)
        if step.is_counted
    ]
    head = [
        "STEP", "IN", "TABLE", "OUT", "TOTAL IN", "TOTAL TABLE", "TOTAL OUT", "STATE ROWS",
        "STATE SIZE",
    ]  # fmt: skip
    lines.append(table(head, rows, right=head[1:]))
    for name, offsets in record.sources.items():
        at = ", ".join(f"{part}:{place}" for part, place in offsets.places())
        lines.append(f"source    {name} at {at or 'its start'}")
    return "\n".join(lines + watermark_lines(record, indent=10))


def pin(
    ui: Ui,
    job: JobArgument,
    id: IdArgument = "latest",
    off: Annotated[
        bool, typer.Option("--off", help="Unpin it: retention may delete it again.")
    ] = False,
) -> None:
    """Keep a checkpoint regardless of retention."""
    home = ui.home.find(job)
    snapshot = find_snapshot(ui.home, id, home.name)
    run = home.run(snapshot.run.run)
    if off:
        was = unpin(run, snapshot.batch)
        ui.say(f"ck:{snapshot.batch} of run {run.id} {'is' if was else 'was'} not pinned"
               + (" any more" if was else ""))  # fmt: skip
    else:
        kept = pin_checkpoint(run, snapshot.batch)
        ui.say(f"pinned ck:{snapshot.batch} of run {run.id}: {size(kept.bytes)}, "
               f"{len(kept.files)} files")  # fmt: skip
    ui.data({"job": home.name, "run": run.id, "id": snapshot.batch, "pinned": not off}, lambda: "")


def verify(
    ui: Ui, job: JobArgument, id: IdArgument = "latest", spark: SparkArgument = None
) -> None:
    """Read every file of a checkpoint and report which are damaged or missing."""
    if id.startswith("-"):  # the id was left out, and this is the first of the flags
        id, spark = "latest", [id, *(spark or ())]
    flags = parse_spark_flags(spark).for_reading(ui.project)
    home = ui.home.find(job)
    verify_snapshot(ui, find_snapshot(ui.home, id, home.name), flags)


def verify_snapshot(ui: Ui, snapshot: Snapshot, flags: SparkFlags) -> None:
    """Check a snapshot's files; exit code 1 if one is not as it was."""
    with still(ui.say, f"reading the files of {snapshot.name}"):
        found = list(snapshot.problems())
    if not found and snapshot.manifest is None:
        found = _read_all(ui, snapshot, flags)
    count = len(snapshot.manifest.files) if snapshot.manifest else 0
    if not found and snapshot.manifest is None:
        count = len(snapshot.closure().files)
    ui.data(
        {"snapshot": snapshot.name, "ok": not found, "files": count,
         "problems": [{"file": p.file, "problem": p.why} for p in found]},
        lambda: "\n".join(f"{p.file} {p.why}" for p in found),
    )  # fmt: skip
    if found:
        ui.say(f"{snapshot.name} cannot be used: {len(found)} file(s) are not as they were")
        raise typer.Exit(ExitCode.FAILED)
    ui.say(f"{snapshot.name} is whole: {count} files")


def _read_all(ui: Ui, snapshot: Snapshot, flags: SparkFlags) -> list[Any]:
    from headgate.runtime.restore_services import verify_data

    ui.say("starting Spark to read the state's files")
    with held(snapshot) as kept, flags.reading() as spark:
        with still(ui.say, "reading the state's files"):
            return list(verify_data(spark, kept))


def delete(ui: Ui, job: JobArgument, id: IdArgument) -> None:
    """Delete a checkpoint that nothing needs: a pinned one, or one of a job that is not running."""
    home = ui.home.find(job)
    snapshot = find_snapshot(ui.home, id, home.name)
    run = home.run(snapshot.run.run)
    unpinned = unpin(run, snapshot.batch)
    if is_live(home.read().lease) and run.id == home.read().current_run:
        if unpinned:
            ui.say(f"ck:{snapshot.batch} is not pinned any more; retention deletes it in time")
            return
        raise RefusedError(
            f"job '{home.name}' is running, and its checkpoints are kept and deleted by retention",
            remedy="stop the job first, or let retention delete it",
        )
    freed = delete_checkpoint(run, snapshot.batch, newest=run.id == home.read().current_run)
    ui.say(f"deleted ck:{snapshot.batch} of run {run.id}: {freed} files")
    ui.data({"job": home.name, "run": run.id, "id": snapshot.batch, "files": freed}, lambda: "")


def create(
    ui: Ui,
    job: JobArgument,
    wait: WaitOption = True,
    timeout: TimeoutOption = None,
) -> None:
    """Request a checkpoint from a running job."""
    home = ui.home.find(job)
    if not is_live(home.read().lease):
        raise RefusedError(
            f"job '{home.name}' is not running, so there is nothing new to keep",
            remedy="its newest checkpoint is `latest`; start it with headgate run",
        )
    record = request_and_wait(ui, home, "checkpoint", {}, wait=wait, timeout=timeout)
    made = (record.result or {}).get("checkpoint")
    ui.data(record.to_json(), lambda: f"ck:{made}" if made is not None else "")
