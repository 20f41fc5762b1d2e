"""Options with a grammar: ``--set k=v``, ``--option k=v`` and Spark's flags after ``--``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.base.errors import NotFoundError, UsageError
from headgate.base.params import resolve
from headgate.base.project import Project
from headgate.base.secrets import protect_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit for the Python that it starts."""

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a param of the job; may be repeated. VALUE may be env:VARIABLE or @FILE.",
    ),
]

SparkArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- SPARK_FLAGS]", help="Flags for Spark, such as --conf or --jars."),
]

ClientOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE|@FILE",
        help="A setting of the broker's client, or a file with settings; may be repeated.",
    ),
]


def parse_client_options(given: Sequence[str] | None) -> dict[str, str]:
    """``["a=1", "@FILE"]`` with the lines of the file, where passwords are not seen by others.

    >>> parse_client_options(["security.protocol=SASL_SSL"])
    {'security.protocol': 'SASL_SSL'}
    """
    options: dict[str, str] = {}
    for text in given or ():
        for where, pair in _lines(text[1:]) if text.startswith("@") else [("--option", text)]:
            name, equals, value = (part.strip() for part in pair.partition("="))
            if not equals or not name:
                raise UsageError(
                    # The text is not shown: it may be a password.
                    f"{where} must be NAME=VALUE",
                    remedy="for instance --option security.protocol=SASL_SSL, or @FILE with such "
                    "lines",
                )
            if name in options:
                raise UsageError(f"the option {name} is given twice", remedy="give it once")
            options[name] = value
    return options


def _lines(file: str) -> list[tuple[str, str]]:
    """Where each line is, and the line; without comments and blank ones."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no file {file}", remedy="check the path after --option @"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read ({error})", remedy="check the file") from error
    lines = [(f"line {n} of {file}", line.strip()) for n, line in enumerate(text.splitlines(), 1)]
    return [(where, line) for where, line in lines if line and not line.startswith("#")]


def params_of(job: str, project: Project, pairs: Sequence[str] | None) -> dict[str, str]:
    """The params of a job: those of ``--set``, and of headgate.toml what is not among them."""
    given = parse_params(pairs)
    return {**parse_params([p for p in project.params_of(job) if _name(p) not in given]), **given}


def _name(pair: str) -> str:
    return pair.partition("=")[0].strip()


def parse_params(pairs: Sequence[str] | None) -> dict[str, str]:
    """``["a=1"]`` as ``{"a": "1"}``, with the values of references (``env:NAME``, ``@FILE``).

    >>> parse_params(["orders=log:data/orders"])
    {'orders': 'log:data/orders'}
    """
    params: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                # The text is not shown: it may be a password.
                "--set must be NAME=VALUE",
                remedy="for instance --set orders=log:data/orders",
            )
        if name in params:
            raise UsageError(f"--set {name} is given twice", remedy="give it once")
        params[name.strip()] = resolve(name.strip(), value)
    protect_settings(params)
    return params


@dataclass(frozen=True)
class SparkFlags:
    """The options that spark-submit would get."""

    master: str | None = None
    conf: dict[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @property
    def py_files(self) -> list[str]:
        """Files and archives of Python that the driver imports from, too."""
        given = [
            *((value for flag, value in pairwise(self.others) if flag == "--py-files")),
            *(w.partition("=")[2] for w in self.others if w.startswith("--py-files=")),
            self.conf.get("spark.submit.pyFiles", ""),
        ]
        return [name.strip() for text in given for name in text.split(",") if name.strip()]

    @property
    def deploy_mode(self) -> str:
        """client, or cluster for a driver that the cluster runs."""
        flags = dict(pairwise(self.others))
        given = [w.partition("=")[2] for w in self.others if w.startswith("--deploy-mode=")]
        return flags.get("--deploy-mode", given[0] if given else "") or self.conf.get(
            "spark.submit.deployMode", "client"
        )

    def beside(self, project: Project) -> SparkFlags:
        """These flags, and what headgate.toml says where they and the environment are silent."""
        master = self.master
        if master is None and SUBMITTED not in os.environ:  # else spark-submit has named it
            usual = project.master.value if project.master is not None else None
            master = os.environ.get("HEADGATE_MASTER") or usual
        return replace(self, master=master, conf={**project.spark_conf(), **self.conf})

    def for_reading(self, project: Project) -> SparkFlags:
        """These flags and headgate.toml's settings, for a command that starts no job.

        It works on this machine, whatever master the jobs of the project have, unless a flag says
        otherwise.
        """
        return replace(self, conf={**project.spark_conf(), **self.conf})

    def begin(self, *, brief: bool = False) -> None:
        """Let the JVM of the session that will be asked for start beside an import."""
        from headgate.runtime.session import begin_session
        from headgate.runtime.signals import shielded_children

        if self.others:  # they are for Spark's launcher, which is started later
            return
        with shielded_children():
            begin_session(master=self.master, conf=self.conf, brief=brief)

    @contextmanager
    def reading(self, *, parallelism: int = 1, brief: bool = False) -> Iterator[SparkSession]:
        """A session for the time of a block that reads."""
        from headgate.runtime.session import session_for_reading

        self.export()
        with session_for_reading(
            parallelism=parallelism, brief=brief, master=self.master, conf=self.conf
        ) as spark:
            yield spark

    def session(self, *, brief: bool = False) -> SparkSession:
        """The session that these flags ask for."""
        from headgate.runtime.session import get_session
        from headgate.runtime.signals import shielded_children

        with shielded_children():
            return get_session(master=self.master, conf=self.conf, brief=brief)

    def export(self) -> None:
        """Hand the flags that Headgate does not know to Spark's launcher."""
        if self.others:
            before = os.environ.get("PYSPARK_SUBMIT_ARGS", "").removesuffix("pyspark-shell")
            words = [*shlex.split(before), *self.others, "pyspark-shell"]
            os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(words)


def parse_spark_flags(words: Sequence[str] | None) -> SparkFlags:
    """Read the flags after ``--``: --master and --conf, and others as they are.

    >>> parse_spark_flags(["--master", "local[2]", "--conf", "a=b"]).master
    'local[2]'
    """
    master: str | None = None
    conf: dict[str, str] = {}
    others: list[str] = []
    rest = list(words or ())
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            raise UsageError(
                f"unexpected argument '{word}'",
                remedy="a command takes one APP; flags for Spark come after --, with their values",
            )
        flag, equals, value = word.partition("=")
        if not equals and rest and not rest[0].startswith("-"):
            value, equals = rest.pop(0), " "
        if flag == "--master":
            master = value or _missing(flag)
        elif flag in ("--conf", "-c"):
            name, pair, setting = value.partition("=")
            if not pair:
                _missing(flag)
            conf[name] = setting
        else:
            others += [flag, value] if equals == " " else [word]
    return SparkFlags(master, conf, tuple(others))


def _missing(flag: str) -> str:
    wanted = "--conf NAME=VALUE" if flag != "--master" else "--master local[4]"
    raise UsageError(f"{flag} must have a value", remedy=f"write it as {wanted}")
