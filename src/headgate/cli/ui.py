"""``headgate ui``: the web interface of a home."""

from __future__ import annotations

import os
import socket
from typing import Annotated

import typer

from headgate.base.errors import UsageError
from headgate.cli.common import Ui, command

TOKEN = "HEADGATE_UI_TOKEN"
READ_TOKEN = "HEADGATE_UI_READ_TOKEN"
DEFAULT_PORT = 8181

HostOption = Annotated[
    str,
    typer.Option("--host", metavar="ADDRESS", help="Address to listen on; loopback by default."),
]
PortOption = Annotated[
    int,
    typer.Option(
        "--port", metavar="N", min=0, max=65535, help="Port to listen on; 0 picks a free one."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    command(app, "ui")(serve)


def serve(
    ui: Ui,
    host: HostOption = "127.0.0.1",
    port: PortOption = DEFAULT_PORT,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Allow looking but no actions.")
    ] = False,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TEXT",
            help=f"Token for looking and acting [env {TOKEN}, which other users do not see].",
        ),
    ] = None,
    read_token: Annotated[
        str | None,
        typer.Option(
            "--read-token", metavar="TEXT", help=f"Token for looking only [env {READ_TOKEN}]."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="A host name of the server; may be repeated."
        ),
    ] = None,
) -> None:
    """Show the home's jobs in a browser and over REST, and let users act on them."""
    import uvicorn

    from headgate.ui.access import Access
    from headgate.ui.app import create_app

    access = Access(
        host=host,
        token=token or os.environ.get(TOKEN) or None,
        read_token=read_token or os.environ.get(READ_TOKEN) or None,
        read_only=read_only,
        names=tuple(allow_host or ()),
    )
    home = ui.home
    listening = listen(host, port)
    address = address_of(host, listening)
    ui.say(f"{home.url} is shown at {address}")
    ui.data(
        {"home": home.url, "address": address, "read_only": read_only}, lambda: ui.said(address)
    )
    config = uvicorn.Config(
        create_app(home, access=access, conf=ui.project.spark_conf()),
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; says so if somebody else does."""
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
    except OSError as error:
        raise UsageError(
            f"cannot listen at {host} port {port}: {error.strerror or error}",
            remedy="choose another --port (0 takes one that is free), or another --host",
        ) from error
    return listening


def address_of(host: str, listening: socket.socket) -> str:
    """The address for a browser."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}/"
