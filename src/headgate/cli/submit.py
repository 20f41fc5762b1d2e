"""``headgate submit``: ``headgate run`` by spark-submit, on whatever cluster it knows."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from headgate.base.errors import UsageError
from headgate.base.handover import hand_over
from headgate.cli.app import find_app
from headgate.cli.common import Ui, command
from headgate.cli.options import parse_spark_flags
from headgate.cli.run import run_job

# the driver fetches jars of its home and brokers, and the user of a container may have no home
_JAR_CACHE = "spark.yarn.appMasterEnv.HEADGATE_JAR_CACHE"
_ENTRY = Path(__file__).parents[1] / "resources" / "submitted.py"


def register(app: typer.Typer) -> None:
    """Add the verb, with all options of ``run``."""
    whole = inspect.signature(run_job, eval_str=True)
    own = [one for one in whole.parameters.values() if one.name != "detach"]  # it waits for a job
    submit.__signature__ = whole.replace(parameters=own)  # type: ignore[attr-defined]
    command(app, "submit")(submit)


def submit(ui: Ui, **options: Any) -> None:
    """Run a job with spark-submit, in client or cluster mode; takes the options of run."""
    app, flags = options.pop("app"), options.pop("spark") or ()
    command, environment = submit_command(ui, app, flags, options)
    ui.say(f"starting {' '.join(command[:1])}")
    sys.stdout.flush()
    # the job's process takes the place of this one: signals and exit code are its own
    os.execve(command[0], command, {**os.environ, **environment})


def submit_command(
    ui: Ui, app: str, flags: Any, options: dict[str, Any]
) -> tuple[list[str], dict[str, str]]:
    """The words of spark-submit, and what its environment must have."""
    from headgate.jvm.java import find_java
    from headgate.jvm.spark_jars import find_spark_jars

    file, wanted = find_app(app)
    spark = parse_spark_flags(flags)
    project = ui.project
    master = spark.beside(project).master
    cluster = spark.deploy_mode == "cluster"
    if cluster and (master or "local").startswith(("spark://", "local")):
        raise UsageError(
            "only YARN and Kubernetes run a driver in Python; "
            f"{'a standalone cluster' if master else 'a local master'} does not",
            got=f"--deploy-mode cluster on {master or 'local[*]'}",
            remedy="leave --deploy-mode out, or name another master",
        )
    words, environment = _words(options)
    if cluster and environment:
        raise UsageError(
            "a secret's value does not travel to the driver of a cluster",
            remedy="write it as env:VARIABLE or @FILE, which the driver reads",
        )
    submit = find_spark_jars().folder.parent / "bin" / "spark-submit"
    command = [str(submit), *(("--master", master) if master and not spark.master else ()), *flags]
    for setting, value in project.spark_conf().items():
        if setting not in spark.conf:
            command += ["--conf", f"{setting}={value}"]
    # it is not opened here: perhaps only the cluster reaches it
    where = [
        "--home",
        _absolute(ui.home_setting.value),
        *(("--env", project.env) if project.env else ()),
    ]
    if cluster:
        from headgate.runtime.travel import archives_of

        for brought in (file, project.file):
            command = _more(command, "--files", str(brought)) if brought else command
        named = project.local_py_files()
        for archive in archives_of([file.parent] if named is None else map(Path, named), ui.say):
            command = _more(command, "--py-files", str(archive))
        name = file.name
        if master == "yarn" and _JAR_CACHE not in {**project.spark_conf(), **spark.conf}:
            command += ["--conf", f"{_JAR_CACHE}=headgate-jars"]
    else:
        environment.setdefault("PYSPARK_PYTHON", os.environ.get("PYSPARK_PYTHON", sys.executable))
        environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
        command += _jvm_settings({**project.spark_conf(), **spark.conf})
        name = str(file)
    environment["JAVA_HOME"] = str(find_java().path)
    name = f"{name}:{wanted}" if wanted else name
    return [*command, str(_ENTRY), "run", name, *where, *words], environment


def _absolute(home: str) -> str:
    return home if ":" in home else str(Path(home).absolute())


def _jvm_settings(conf: dict[str, str]) -> list[str]:
    """Flags for what the driver's JVM must start with, as that of ``headgate run`` does."""
    from headgate.runtime.session import quiet_log
    from headgate.runtime.spark_settings import DRIVER_JAVA, DRIVER_MEMORY, for_the_jvm

    settings = for_the_jvm(conf, None, quiet_log())
    names = (name for name in (DRIVER_MEMORY, DRIVER_JAVA) if name in settings)
    return [word for name in names for word in ("--conf", f"{name}={settings[name]}")]


def _more(command: list[str], flag: str, value: str) -> list[str]:
    """The command with one more value of a flag that takes a list, and stands there once."""
    for at, word in enumerate(command):
        if word == flag and at + 1 < len(command):
            return [*command[: at + 1], f"{command[at + 1]},{value}", *command[at + 2 :]]
        if word.startswith(f"{flag}="):
            return [*command[:at], f"{word},{value}", *command[at + 1 :]]
    return [*command, flag, value]


def _words(options: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The options as they were written, for ``run``; secrets by the environment."""
    hints = get_type_hints(run_job, include_extras=True)
    usual = inspect.signature(run_job).parameters
    words: list[str] = []
    environment: dict[str, str] = {}
    for name, value in options.items():
        if value is None or value is False or value == usual[name].default:
            continue
        if name == "params":
            pairs = dict(_pair(text) for text in value)
            words_of_params, environment = hand_over(pairs)
            words += words_of_params
            continue
        (info,) = get_args(hints[name])[1:]
        option = str([*info.param_decls, info.default][0])  # typer takes the first for a default
        words += [option] if value is True else [option, str(value)]
    return words, environment


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError("--set must be NAME=VALUE", remedy="for instance --set orders=log:orders")
    return name, value
