"""``headgate doctor``: whether this machine can run jobs, and what to do if not."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.base.errors import ExitCode
from headgate.cli.common import Ui, command
from headgate.cli.options import SparkArgument, parse_spark_flags


def register(app: typer.Typer) -> None:
    """Add the verb."""
    command(app, "doctor")(doctor)


def doctor(
    ui: Ui,
    spark: SparkArgument = None,
    live: Annotated[
        bool, typer.Option("--live", help="Also start Java, and write to a remote home.")
    ] = False,
    warm: Annotated[
        bool,
        typer.Option(
            "--warm",
            help="Create the archive of Spark's classes now, so that starts take half as long.",
        ),
    ] = False,
) -> None:
    """Check Java, Spark, the kernel and the home, and say how to fix each problem."""
    from headgate.doctor.checks import run_checks

    if warm:
        from headgate.testing.training import make

        ui.say("writing down the classes that Spark loads (once)")
        make()
    flags = parse_spark_flags(spark).for_reading(ui.project)
    flags.export()
    checks = run_checks(ui.home_setting.value, live=live, master=flags.master, conf=flags.conf)
    bad = [check for check in checks if not check.ok]
    width = max(len(check.name) for check in checks)

    def text() -> str:
        lines = []
        for check in checks:
            lines.append(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<{width}}  {check.detail}")
            if check.remedy:
                lines.append(f"      {'':<{width}}  -> {check.remedy}")
        return "\n".join(lines)

    ui.data(
        {
            "ok": not bad,
            "checks": [
                {"name": c.name, "ok": c.ok, "detail": c.detail, "remedy": c.remedy} for c in checks
            ],
        },
        text,
    )
    if bad:
        ui.say(f"{len(bad)} of {len(checks)} checks failed")
        raise typer.Exit(ExitCode.FAILED)
