"""headgate.toml: the home, Spark's settings, py-files and params of a project, by environment.

What a command line says comes first, then the process's environment, then `[env.NAME]` of the
file, then the rest of the file, then defaults.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.base.errors import NotFoundError, UsageError

FILE = "headgate.toml"
FILE_VARIABLE = "HEADGATE_CONFIG"
ENV_VARIABLE = "HEADGATE_ENV"
_KEYS = {"home": str, "py_files": list, "spark": dict, "jobs": dict}
_LAYERS = "env"


@dataclass(frozen=True)
class Value:
    """A setting, and where it stands."""

    value: str
    origin: str


@dataclass(frozen=True)
class Project:
    """The settings of a project for one environment; empty without a file."""

    file: Path | None = None
    env: str | None = None
    home: Value | None = None
    master: Value | None = None
    py_files: tuple[Value, ...] | None = None
    """None if the file does not say; an empty list is meant."""
    conf: Mapping[str, Value] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """By job."""

    def spark_conf(self) -> dict[str, str]:
        """Spark's settings."""
        return {name: found.value for name, found in self.conf.items()}

    def local_py_files(self, *, brought: bool = False) -> list[str] | None:
        """py_files, if the file names any; those that spark-submit has `brought` are not here."""
        if self.py_files is None:
            return None
        named = [found.value for found in self.py_files]
        return [name for name in named if not brought or Path(name).exists()]

    def params_of(self, job: str) -> list[str]:
        """The params of a job, as `--set` takes them."""
        return [f"{name}={found.value}" for name, found in self.params.get(job, {}).items()]

    def settings(self) -> Iterator[tuple[str, Value]]:
        """All that the file says, by name."""
        for name, one in (("home", self.home), ("spark.master", self.master)):
            if one is not None:
                yield name, one
        for one in self.py_files or ():
            yield "py_files", one
        yield from self.conf.items()
        for job, params in self.params.items():
            for name, one in params.items():
                yield f"jobs.{job}.params.{name}", one


def load_project(env: str | None = None, *, folder: Path | None = None) -> Project:
    """The project of a folder: that of headgate.toml in it or in the nearest folder above."""
    file = _find(folder or Path.cwd())
    env = env or os.environ.get(ENV_VARIABLE) or None
    if file is None:
        if env is not None:
            raise NotFoundError(
                f"there is no {FILE}, so there is no environment '{env}'",
                remedy=f"write one with headgate init, or unset {ENV_VARIABLE} and --env",
            )
        return Project()
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", remedy="correct the file") from error
    own = {name: value for name, value in data.items() if name != _LAYERS}
    layers: list[tuple[str, Mapping[str, Any]]] = [(file.name, own)]
    environments = _table(data, _LAYERS, file.name)
    for name in environments:
        _check(_table(environments, name, f"env of {file.name}"), f"[env.{name}] of {file.name}")
    if env is not None:
        if env not in environments:
            known = ", ".join(sorted(environments)) or "none"
            raise NotFoundError(
                f"{file.name} has no environment '{env}'", remedy=f"it has: {known}"
            )
        layers.append((f"{file.name} [env.{env}]", environments[env]))
    _check(own, file.name)
    return _merged(file, env, layers)


def _find(folder: Path) -> Path | None:
    if named := os.environ.get(FILE_VARIABLE):
        if not Path(named).is_file():
            raise NotFoundError(f"there is no file {named}", remedy=f"correct {FILE_VARIABLE}")
        return Path(named).resolve()
    for place in (folder, *folder.parents):
        if (place / FILE).is_file():
            return place / FILE
    return None


def _check(table: Mapping[str, Any], where: str) -> None:
    for name, value in table.items():
        if name not in _KEYS:
            raise UsageError(
                f"{where} has a setting '{name}' that is not known",
                expected=", ".join([*_KEYS, _LAYERS]),
                remedy="correct or remove it",
            )
        if not isinstance(value, _KEYS[name]):
            raise UsageError(
                f"{name} in {where} must be a {_KEYS[name].__name__}",
                got=repr(value),
                remedy="correct it",
            )
    for job in table.get("jobs", {}):
        unknown = sorted(set(_table(table["jobs"], job, where)) - {"params"})
        if unknown:
            raise UsageError(
                f"jobs.{job} in {where} has a setting '{unknown[0]}' that is not known",
                expected="params",
                remedy="correct or remove it",
            )


def _merged(file: Path, env: str | None, layers: list[tuple[str, Mapping[str, Any]]]) -> Project:
    home = master = None
    py_files: tuple[Value, ...] | None = None
    conf: dict[str, Value] = {}
    params: dict[str, dict[str, Value]] = {}
    for origin, table in layers:
        if "home" in table:
            home = Value(_place(file, table["home"]), origin)
        if "py_files" in table:
            py_files = tuple(Value(_place(file, str(f)), origin) for f in table["py_files"])
        for name, value in _flat(_table(table, "spark", origin)):
            if name == "master":
                master = Value(str(value), origin)
            else:
                conf[f"spark.{name}"] = Value(_text(value), origin)
        for job, settings in _table(table, "jobs", origin).items():
            for name, value in _table(settings, "params", f"jobs.{job} of {origin}").items():
                params.setdefault(job, {})[name] = Value(_text(value), origin)
    return Project(file, env, home, master, py_files, conf, params)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of nested tables by their whole names: `[spark] executor.memory = "2g"`."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _table(data: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise UsageError(f"{name} in {where} must be a table", got=repr(found), remedy="correct it")
    return found


def _place(file: Path, path: str) -> str:
    """A path beside the file; an address as it is."""
    if ":" in path or Path(path).is_absolute():
        return path
    return str(file.parent / path)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
