"""``headgate savepoint``: labelled, self-contained snapshots that outlive their run."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from headgate.base.errors import NotFoundError, RefusedError, UsageError
from headgate.base.still import still
from headgate.cli.checkpoints import verify_snapshot
from headgate.cli.common import HELP, Ui, command
from headgate.cli.control import JobArgument, TimeoutOption, WaitOption, request_and_wait
from headgate.cli.options import SparkFlags
from headgate.cli.tables import local_time, number, size, table
from headgate.home.layout import JobHome
from headgate.runtime.lease import is_live
from headgate.runtime.records import Recorder
from headgate.snapshots.savepoints import (
    SavepointRecord,
    copy_savepoint,
    create_savepoint,
    delete_savepoint,
    savepoints,
)
from headgate.snapshots.snapshot import Snapshot, find_snapshot

SnapArgument = Annotated[
    str, typer.Argument(metavar="SNAP", help="sp:label, or a savepoint's path or URL.")
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    verbs = typer.Typer(
        help="Savepoints of a job: create, list, show, copy, verify, delete.",
        no_args_is_help=True,
        context_settings=HELP,
    )
    command(verbs, "create")(create)
    command(verbs, "list")(list_savepoints)
    command(verbs, "show")(show)
    command(verbs, "copy")(copy)
    command(verbs, "verify")(verify)
    command(verbs, "delete")(delete)
    app.add_typer(verbs, name="savepoint")


def create(
    ui: Ui,
    job: JobArgument,
    snapshot: Annotated[
        str, typer.Argument(metavar="[SNAP]", help="The checkpoint to save; the newest by default.")
    ] = "latest",
    label: Annotated[
        str | None, typer.Option("--label", metavar="NAME", help="The savepoint's name.")
    ] = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = None,
) -> None:
    """Create a savepoint of a running or stopped job."""
    home = ui.home.find(job)
    if snapshot == "latest" and is_live(home.read().lease):
        args = {"label": label} if label else {}
        record = request_and_wait(ui, home, "savepoint", args, wait=wait, timeout=timeout)
        made = (record.result or {}).get("label")
        ui.data(record.to_json(), lambda: f"sp:{made}" if made else "")
        return
    if snapshot == "latest":
        _recover(home)
    found = find_snapshot(ui.home, snapshot, home.name)
    if found.manifest is not None and found.manifest.kind == "savepoint":
        raise UsageError(
            f"{snapshot} is already a savepoint", remedy="copy it with headgate savepoint copy"
        )
    taken = create_savepoint(
        home.run(found.run.run), checkpoint=found.batch, label=label, reason="command line"
    )
    _report(ui, taken)


def _recover(home: JobHome) -> None:
    """Write what a killed driver could not, so that the savepoint has its newest counts."""
    current = home.current()
    if current is not None:
        Recorder(current, [str(name) for name in current.graph()["sources"]]).recover()


def _report(ui: Ui, record: SavepointRecord) -> None:
    ui.say(f"savepoint sp:{record.label}  {record.path}  {size(record.bytes)}  "
           f"of ck:{record.checkpoint} of run {record.run}")  # fmt: skip
    ui.data(record.to_json(), lambda: f"sp:{record.label}")


def list_savepoints(ui: Ui, job: JobArgument) -> None:
    """List a job's savepoints, oldest first."""
    home = ui.home.find(job)
    records = savepoints(home)
    if not records:
        ui.say(f"job {home.name} has no savepoints")
    ui.data(
        {"job": home.name, "savepoints": [record.to_json() for record in records]},
        lambda: _list_text(records),
    )


def _list_text(records: list[SavepointRecord]) -> str:
    if not records:
        return ""
    return table(
        ["SAVEPOINT", "OF", "CREATED", "SIZE", "FILES", "WHY"],
        [
            [
                f"sp:{record.label}",
                f"{record.run}/ck:{record.checkpoint}",
                local_time(record.created_at),
                size(record.bytes),
                number(record.files),
                record.reason,
            ]
            for record in records
        ],
        right=["SIZE", "FILES"],
    )


def show(ui: Ui, job: JobArgument, snapshot: SnapArgument) -> None:
    """Show a savepoint: its job and checkpoint, its steps and its path."""
    found = _savepoint(ui, job, snapshot)
    assert found.manifest is not None
    manifest = found.manifest
    states = found.record.state if found.record else {}
    value = {**manifest.summary(), "path": found.files.location(), "state": dict(states)}
    ui.data(
        value,
        lambda: "\n".join(
            [
                f"sp:{manifest.label}   ck:{manifest.checkpoint} of run {manifest.run} of "
                f"{manifest.job}",
                f"created   {local_time(manifest.created_at)}   {manifest.reason}",
                f"files     {len(manifest.files):,}   {size(manifest.bytes)}",
                f"folder    {found.location.removesuffix('/spark')}",
                *(f"state     {step}  {n.get('rows', 0):,} rows" for step, n in states.items()),
            ]
        ),
    )


def copy(
    ui: Ui,
    job: JobArgument,
    snapshot: SnapArgument,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="URI", help="Folder or URL that does not exist yet."),
    ] = None,
    as_job: Annotated[
        str | None,
        typer.Option(
            "--as-job", metavar="JOB", help="Copy it to this job, as the job's own savepoint."
        ),
    ] = None,
) -> None:
    """Copy a savepoint to a different folder or URL, or to a different job in the home."""
    found = _savepoint(ui, job, snapshot)
    assert found.manifest is not None
    if (to is None) == (as_job is None):
        raise UsageError("a copy must have --to or --as-job", remedy="give one of the two")
    if as_job is not None:
        target = ui.home.job(as_job)
        to = target.files.address(f"{target.path}/savepoints/{found.manifest.label}")
    assert to is not None
    ui.say(f"copying {size(found.manifest.bytes)}")
    with still(ui.say, f"copying to {to}"):
        copied = copy_savepoint(found, to, job=as_job)
    _report(ui, copied)


def verify(ui: Ui, job: JobArgument, snapshot: SnapArgument) -> None:
    """Check every file of a savepoint against its manifest."""
    verify_snapshot(ui, _savepoint(ui, job, snapshot), SparkFlags())


def delete(
    ui: Ui,
    job: JobArgument,
    snapshot: SnapArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a savepoint."""
    home = ui.home.find(job)
    label = snapshot.removeprefix("sp:")
    if not yes:
        if not sys.stdin.isatty():
            raise RefusedError(f"savepoint sp:{label} would be deleted", remedy="pass --yes")
        typer.confirm(f"delete savepoint sp:{label} of {home.name}?", abort=True, err=True)
    delete_savepoint(home, label)
    ui.say(f"deleted sp:{label}")
    ui.data({"job": home.name, "label": label, "deleted": True}, lambda: "")


def _savepoint(ui: Ui, job: str, snapshot: str) -> Snapshot:
    is_path = "/" in snapshot or ":" in snapshot
    text = snapshot if is_path else f"sp:{snapshot}"
    # the catalog outlives the job: a job of which only savepoints are left is found by its name
    names = [found.name for found in ui.home.jobs() if found.name.startswith(job)]
    found = find_snapshot(ui.home, text, *(names[:1] if len(names) == 1 else [job]))
    if found.manifest is None or found.manifest.kind != "savepoint":
        raise NotFoundError(f"{snapshot} is not a savepoint", remedy="see headgate savepoint list")
    return found
