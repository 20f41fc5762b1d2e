"""``headgate config show`` and ``headgate init``: the settings of a project, and a new one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headgate.base.errors import RefusedError
from headgate.base.project import Value
from headgate.base.secrets import shown
from headgate.cli.common import HELP, Ui, command
from headgate.cli.tables import table

TEMPLATE = Path(__file__).parents[1] / "resources" / "template"
_INPUT = "orders.jsonl"
_IN_FOLDER = "log:data"


class Template(StrEnum):
    """Where the topics of a new project are."""

    MINIMAL = "minimal"
    KAFKA = "kafka"
    PULSAR = "pulsar"


_PORTS = {Template.KAFKA: 9092, Template.PULSAR: 6650}


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    config = typer.Typer(
        name="config",
        help="The project's settings.",
        no_args_is_help=True,
        context_settings=HELP,
        rich_markup_mode=None,
    )
    app.add_typer(config)
    command(config, "show")(show)
    command(app, "init")(init)


def show(
    ui: Ui,
    origin: Annotated[
        bool, typer.Option("--origin", help="Also show where each value came from.")
    ] = False,
) -> None:
    """Show the home, Spark settings, py-files and params that commands use here."""
    found = list(_settings(ui))
    rows = [
        [name, shown(name.rpartition(".")[2], one.value), *([one.origin] if origin else [])]
        for name, one in found
    ]
    ui.data(
        {
            "file": str(ui.project.file) if ui.project.file else None,
            "env": ui.project.env,
            "settings": [
                {"name": n, "value": shown(n.rpartition(".")[2], v.value), "origin": v.origin}
                for n, v in found
            ],
        },
        lambda: table(["NAME", "VALUE", *(["ORIGIN"] if origin else [])], rows),
    )


def _settings(ui: Ui) -> list[tuple[str, Value]]:
    from headgate.runtime.spark_settings import user_files

    settings = {name: one for name, one in ui.project.settings() if name != "py_files"}
    settings["home"] = Value(ui.home.url, ui.home_setting.origin)
    if master := os.environ.get("HEADGATE_MASTER"):
        settings["spark.master"] = Value(master, "HEADGATE_MASTER")
    for name, value in user_files().items():
        settings.setdefault(name, Value(value, "spark-defaults.conf"))
    settings.setdefault("spark.master", Value("local[*]", "default"))
    lists = [("py_files", one) for one in ui.project.py_files or ()]
    return sorted([*settings.items(), *lists], key=lambda one: one[0])


def init(
    ui: Ui,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The project's folder; it may already exist.")
    ] = Path("."),
    template: Annotated[
        Template,
        typer.Option(
            "--template", help="Where topics are: in files, or on a broker on this machine."
        ),
    ] = Template.MINIMAL,
) -> None:
    """Create a working project: headgate.toml, a job, its test, and some orders."""
    written = {file.name.removesuffix(".txt"): file for file in sorted(TEMPLATE.glob("*.txt"))}
    there = [name for name in [*written, "data"] if (folder / name).exists()]
    if there:
        raise RefusedError(
            f"{folder / there[0]} is there already, and is not written over",
            remedy="name another folder",
        )
    folder.mkdir(parents=True, exist_ok=True)
    topics = _topics(template)
    for name, file in written.items():
        text = file.read_text(encoding="utf-8").replace(f'"{_IN_FOLDER}/', f'"{topics}/')
        (folder / name).write_text(text, encoding="utf-8")
    names = list(written)
    if template is Template.MINIMAL:
        _fill_log(folder)
        names = [*(name for name in names if name != _INPUT), "data/orders"]
    ui.data(
        {"folder": str(folder), "files": names},
        lambda: "\n".join(str(folder / name) for name in names),
    )
    ui.say("now: " + " && ".join([f"cd {folder}", *_commands(template)]))


def _topics(template: Template) -> str:
    """What the addresses of the project's topics begin with."""
    port = _PORTS.get(template)
    return f"{template.value}://127.0.0.1:{port}" if port else _IN_FOLDER


def _fill_log(folder: Path) -> None:
    """Make a topic of files from the orders."""
    from headgate.connectors.log.files import Record, TopicFiles

    topic = TopicFiles(folder / "data" / "orders")
    topic.create(2)
    orders = (folder / _INPUT).read_text(encoding="utf-8").splitlines()
    topic.append([Record(line) for line in orders])
    (folder / _INPUT).unlink()


def _commands(template: Template) -> Iterator[str]:
    """What to type in the new folder."""
    topics = _topics(template)
    if port := _PORTS.get(template):
        yield f"headgate broker start {template.value} --port {port}"
        yield f"headgate topic create {topics}/orders --partitions 2"
        yield f"headgate topic create {topics}/totals"
        yield f"headgate topic produce {topics}/orders --file {_INPUT}"
    yield "headgate run job.py --bounded"
    yield f"headgate topic read {topics}/totals"
