"""``headgate broker``: a real broker on this machine, from pinned jars, without Docker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.base.errors import ExitCode, UsageError
from headgate.cli.common import HELP, Ui, command
from headgate.cli.tables import local_time

if TYPE_CHECKING:
    from headgate.brokers import BrokerStatus, KafkaBroker, PulsarBroker

KindArgument = Annotated[str, typer.Argument(metavar="kafka|pulsar", help="The kind of broker.")]
DirOption = Annotated[
    Path | None,
    typer.Option(
        "--dir", metavar="FOLDER", help="The broker's folder [default: brokers/KIND in the home]."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    broker = typer.Typer(no_args_is_help=True, context_settings=HELP, rich_markup_mode=None)
    command(broker, "start")(start)
    command(broker, "stop")(stop)
    command(broker, "status")(status)
    app.add_typer(broker, name="broker", help="A real broker on this machine, for tests and demos.")


def start(
    ui: Ui,
    kind: KindArgument,
    folder: DirOption = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=1, max=65535,
            help="Its port [default: the one it had, else a free one]; Pulsar's web port is "
            "1430 above it.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Start a broker on 127.0.0.1, unless it is running, and print its address."""
    from headgate.brokers import BrokerState

    broker = _broker(ui, kind, folder)
    if broker.status().state != BrokerState.RUNNING:
        ui.say(f"starting a {kind} broker in {_near(broker.folder)}")
    done = broker.start(port=port, quiet=ui.quiet)
    record = done.record
    ui.say(
        {
            "started": f"it is listening on {record.servers}; its log is {_near(Path(record.log))}",
            "restarted": f"after a crash, it is listening on {record.servers} again, with its data",
            "running": f"it was already running, at {record.servers}",
        }[done.how]
    )
    status = broker.status().to_json()
    ui.data({**status, "state": "running", "how": str(done.how)}, lambda: record.servers)


def stop(ui: Ui, kind: KindArgument, folder: DirOption = None) -> None:
    """Stop a broker; its data is kept for the next start."""
    broker = _broker(ui, kind, folder)
    stopped = broker.stop()
    where = _near(broker.folder)
    ui.say(
        f"the broker in {where} has stopped; its data stays there"
        if stopped
        else f"no broker is running in {where}"
    )
    ui.data({**broker.status().to_json(), "stopped": stopped}, lambda: "")


def status(ui: Ui, kind: KindArgument, folder: DirOption = None) -> None:
    """Show a broker's status: exit 0 if it works, 3 if none is running, 1 if it has a problem."""
    from headgate.brokers import BrokerState

    found = _broker(ui, kind, folder).status()
    ui.data(found.to_json(), lambda: _text(found))
    if found.state in (BrokerState.STOPPED, BrokerState.ABSENT):
        raise typer.Exit(ExitCode.NOT_FOUND)
    if found.state != BrokerState.RUNNING:
        raise typer.Exit(ExitCode.FAILED)


def _broker(ui: Ui, kind: str, folder: Path | None) -> KafkaBroker | PulsarBroker:
    if kind not in ("kafka", "pulsar"):
        raise UsageError(
            "the broker must be kafka or pulsar",
            got=repr(kind),
            remedy="for instance headgate broker start kafka",
        )
    from headgate.brokers import KafkaBroker, PulsarBroker

    if folder is None:
        home = ui.home
        local = home.files.local()
        if local is None:
            raise UsageError(
                f"a broker's folder must be on this machine, got the home {home.url}",
                remedy="name a folder with --dir",
            )
        folder = local / "brokers" / kind
    return KafkaBroker(folder) if kind == "kafka" else PulsarBroker(folder)


def _near(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _text(found: BrokerStatus) -> str:
    record = found.record
    lines = [f"{found.state}   {record.servers}" if record else str(found.state)]
    lines.append(f"folder    {found.folder}")
    if record is not None:
        if record.web is not None:
            lines.append(f"web       {record.web}")
        if record.process is not None:
            lines.append(f"process   {record.process.pid}")
            lines.append(f"started   {local_time(record.started_at)}")
        lines.append(f"release   {record.kind} {record.release}")
        lines.append(f"log       {record.log}")
    return "\n".join(lines)
