"""``headgate state``: the state of any snapshot in the terminal, by step and key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.base.errors import NotFoundError, UsageError
from headgate.cli.common import HELP, Ui, command
from headgate.cli.options import SparkArgument, parse_spark_flags
from headgate.cli.tables import number, size, table
from headgate.snapshots.hold import held
from headgate.snapshots.snapshot import Snapshot, find_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.state import StateReader, StateShape

TargetArgument = Annotated[
    str, typer.Argument(metavar="JOB[@SNAP]", help="The job, at its newest checkpoint or at SNAP.")
]
StepArgument = Annotated[str, typer.Argument(metavar="STEP", help="The step that keeps the state.")]
StoreOption = Annotated[
    str, typer.Option("--state", metavar="NAME", help="The name of the state in the step.")
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="Show at most this many rows.")]
WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="SQL", help="Only rows that match, such as \"row.name = 'Ann'\"."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    verbs = typer.Typer(
        help="State of a job at any snapshot: list, get, scan, diff, export.",
        no_args_is_help=True,
        context_settings=HELP,
    )
    command(verbs, "list")(list_states)
    command(verbs, "get")(get)
    command(verbs, "scan")(scan)
    command(verbs, "diff")(diff)
    command(verbs, "export")(export)
    app.add_typer(verbs, name="state")


def list_states(ui: Ui, target: TargetArgument) -> None:
    """List the steps that keep state, with rows and sizes, without starting Spark."""
    from headgate.state.shape import kept_states

    snapshot = _snapshot(ui, target)
    rows = kept_states(snapshot)
    ui.data(
        {**_names(snapshot), "steps": rows},
        lambda: table(
            ["STEP", "KIND", "STATE", "KEY", "ROWS", "SIZE"],
            [
                [
                    row["step"],
                    row["kind"],
                    ", ".join(row["states"]),
                    ", ".join(row["key"]),
                    number(row["rows"]),
                    size(row["bytes"]),
                ]
                for row in rows
            ],
            right=["ROWS", "SIZE"],
        ),
    )


def get(
    ui: Ui,
    target: TargetArgument,
    step: StepArgument,
    spark: SparkArgument = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="NAME=VALUE",
            help="A part of the key; NAME without a value means null.",
        ),
    ] = None,
    state: StoreOption = "default",
) -> None:
    """Show the state of one key."""
    wanted = _key(key or [])
    snapshot = _snapshot(ui, target)
    shape = _shape(snapshot, step, state)
    shape.check_key(step, wanted)
    with _reader(ui, snapshot, spark, brief=True) as reader:
        from headgate.state.plain import json_value, plain_rows

        rows = json_value(plain_rows(reader.get(step, wanted, state)))
    if not rows:
        parts = [f"{k} (null)" if v is None else f"{k}={v}" for k, v in wanted.items()]
        looked_for = ", ".join(parts) or "its rows"
        raise NotFoundError(
            f"step '{step}' keeps nothing for {looked_for} at {snapshot.name}",
            remedy="see which keys there are with headgate state scan",
        )
    at, found = rows[0]["partition"], rows[0]["key"]
    states = [{k: v for k, v in row.items() if k not in ("key", "partition")} for row in rows]
    value = {"states": states} if shape.many(step, state) else {"state": states[0]}
    ui.data(
        {**_names(snapshot), "step": step, "key": found, **value, "partition": at},
        lambda: "\n".join(_json(one) for one in states),
    )


def scan(
    ui: Ui,
    target: TargetArgument,
    step: StepArgument,
    spark: SparkArgument = None,
    where: WhereOption = None,
    limit: LimitOption = 20,
    state: StoreOption = "default",
) -> None:
    """Show rows of a step's state."""
    snapshot = _snapshot(ui, target)
    _shape(snapshot, step, state)
    with _reader(ui, snapshot, spark) as reader:
        from headgate.state.plain import json_value, plain_rows

        frame = _filtered(reader.frame(step, state), where)
        rows = json_value(plain_rows(frame.limit(limit)))
    ui.data(
        {**_names(snapshot), "step": step, "rows": rows},
        lambda: "\n".join(
            _json({name: value for name, value in row.items() if name != "partition"})
            for row in rows
        ),
    )
    if len(rows) == limit:
        ui.say(f"the first {limit} rows; see more with --limit")


def diff(
    ui: Ui,
    target: TargetArgument,
    step: StepArgument,
    spark: SparkArgument = None,
    against: Annotated[
        str, typer.Option("--against", metavar="SNAP", help="The snapshot to compare with.")
    ] = "latest",
    limit: LimitOption = 20,
    state: StoreOption = "default",
) -> None:
    """Show which keys were added, removed or changed between two snapshots."""
    snapshot = _snapshot(ui, target)
    other = find_snapshot(ui.home, against, snapshot.job)
    for one in (snapshot, other):
        _shape(one, step, state)
    with held(other) as kept, _reader(ui, snapshot, spark) as reader:
        from headgate.runtime.restore_services import reach
        from headgate.state import StateReader
        from headgate.state.diff import diff_states
        from headgate.state.plain import json_value

        reach(reader.spark, kept)
        second = StateReader(reader.spark, kept)
        counts, rows = diff_states(
            reader.frame(step, state),
            second.frame(step, state),
            limit=limit,
            apart=reader.shape.apart(step, state),
        )
        shown = json_value(rows)
    value = {
        "job": snapshot.job,
        "before": snapshot.name,
        "after": other.name,
        "step": step,
        "counts": counts,
        "rows": shown,
    }
    ui.data(value, lambda: "\n".join(_json(row) for row in shown))
    summary = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    ui.say(f"from {snapshot.name} to {other.name}: {summary}")


def export(
    ui: Ui,
    target: TargetArgument,
    step: StepArgument,
    spark: SparkArgument = None,
    *,
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FILE", help="A JSON Lines file that does not exist yet."),
    ],
    where: WhereOption = None,
    state: StoreOption = "default",
) -> None:
    """Write a step's state to a file, one JSON object per line."""
    if to.exists():
        raise UsageError(f"{to} already exists", remedy="name another file")
    snapshot = _snapshot(ui, target)
    _shape(snapshot, step, state)
    count = 0
    aside = to.with_name(f".{to.name}.aside")
    with _reader(ui, snapshot, spark) as reader, aside.open("w", encoding="utf-8") as file:
        from headgate.state.plain import in_utc, json_value

        frame = _filtered(reader.frame(step, state), where).drop("partition")
        for row in in_utc(frame).toLocalIterator(True):
            file.write(_json(json_value(row)) + "\n")
            count += 1
            if count % 100_000 == 0:
                ui.say(f"{count:,} rows")
    aside.rename(to)
    ui.say(f"{count:,} rows of {step} at {snapshot.name} in {to}")
    ui.data({**_names(snapshot), "step": step, "file": str(to), "rows": count}, lambda: "")


def _snapshot(ui: Ui, target: str) -> Snapshot:
    job, _, snapshot = target.partition("@")
    return find_snapshot(ui.home, snapshot or "latest", ui.home.find(job).name)


@contextmanager
def _reader(
    ui: Ui, snapshot: Snapshot, words: list[str] | None, *, brief: bool = False
) -> Iterator[StateReader]:
    flags = parse_spark_flags(words).for_reading(ui.project)
    flags.begin(brief=brief)
    from headgate.runtime.restore_services import reach
    from headgate.state import StateReader

    ui.say(f"starting Spark to read {snapshot.name}")
    # the job may be running, and retention at work
    with held(snapshot) as kept, flags.reading(brief=brief) as spark:
        reach(spark, kept)
        yield StateReader(spark, kept)


def _shape(snapshot: Snapshot, step: str, state: str) -> StateShape:
    """What the graph knows is said before Spark is started."""
    from headgate.state.shape import StateShape

    shape = StateShape(snapshot)
    shape.check_name(step, state)
    return shape


def _filtered(frame: DataFrame, where: str | None) -> DataFrame:
    from pyspark.errors import PySparkException

    if where is None:
        return frame
    try:
        return frame.where(where)
    except PySparkException as error:
        first = str(error).strip().splitlines()[0].split(" SQLSTATE")[0].rstrip(".")
        raise UsageError(
            f"--where must be a condition on the columns of the state: {first}",
            expected=frame.schema.simpleString(),
            remedy='write SQL over these columns, for instance "key.id > 5"',
        ) from error


def _key(parts: list[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not name:
            raise UsageError(
                "--key must name a part of the key",
                got=repr(part),
                remedy="for instance --key user_id=42",
            )
        if name in found:
            raise UsageError(f"the key's part '{name}' is given twice", remedy="give it once")
        found[name] = value if equals else None
    return found


def _names(snapshot: Snapshot) -> dict[str, Any]:
    return {"job": snapshot.job, "snapshot": snapshot.name}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
