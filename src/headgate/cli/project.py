"""``headgate config show`` and ``headgate init``: the settings of a project, and a new one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from headgate.base.errors import RefusedError
from headgate.base.project import Value
from headgate.base.secrets import shown
from headgate.cli.common import HELP, Ui, command
from headgate.cli.tables import table

TEMPLATE = Path(__file__).parents[1] / "resources" / "template"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    config = typer.Typer(
        name="config",
        help="Settings of the project.",
        no_args_is_help=True,
        context_settings=HELP,
        rich_markup_mode=None,
    )
    app.add_typer(config)
    command(config, "show")(show)
    command(app, "init")(init)


def show(
    ui: Ui,
    origin: Annotated[bool, typer.Option("--origin", help="Also show who has said so.")] = False,
) -> None:
    """Show the home, Spark's settings, py-files and params that commands here work with."""
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
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="It may exist.")] = Path("."),
) -> None:
    """Write a project that runs: headgate.toml, a job, its test, and a topic with some orders."""
    from headgate.connectors.log.files import Record, TopicFiles

    written = {file.name.removesuffix(".txt"): file for file in sorted(TEMPLATE.glob("*.txt"))}
    there = [name for name in [*written, "data"] if (folder / name).exists()]
    if there:
        raise RefusedError(
            f"{folder / there[0]} is there already, and is not written over",
            remedy="name another folder",
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in written.items():
        (folder / name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    topic = TopicFiles(folder / "data" / "orders")
    topic.create(2)
    orders = (folder / "orders.jsonl").read_text(encoding="utf-8").splitlines()
    topic.append([Record(line) for line in orders])
    (folder / "orders.jsonl").unlink()
    names = [name for name in written if name != "orders.jsonl"]
    ui.data(
        {"folder": str(folder), "files": [*names, "data/orders"]},
        lambda: "\n".join(str(folder / name) for name in [*names, "data/orders"]),
    )
    ui.say(
        f"now: cd {folder} && headgate run job.py --bounded && headgate topic read log:data/totals"
    )
