"""What a job was started with, and where each value came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.base.secrets import shown
from headgate.home.layout import RunHome
from headgate.ui.model.view import IsoTime, View

_WORDS = {
    "default": "Headgate's default",
    "job file": "the job's file",
    "flag": "the command line",
    "reference": "the command line, by reference",
    "environment": "an environment variable",
    "run": "the run, or the machine's cores when it began",
    "headgate": "fixed by Headgate: its guarantees rest on it",
}
# What holds for every job, named as people who know Flink look for it.
_ALWAYS = {
    "checkpoints.mode": "EXACTLY_ONCE",
    "checkpoints.state_backend": "RocksDB",
    "checkpoints.changelog": "on: a checkpoint writes what has changed",
    "checkpoints.concurrent": "1: a checkpoint is a micro-batch",
}


@dataclass(frozen=True)
class SettingView(View):
    """One value."""

    name: str
    value: str
    origin: str
    origin_text: str


@dataclass(frozen=True)
class ConfigurationView(View):
    """All values of a job's last start; those that are secret are masked."""

    job: str
    run: str | None
    started_at: IsoTime | None
    checkpoints: tuple[SettingView, ...]
    job_settings: tuple[SettingView, ...]
    params: tuple[SettingView, ...]
    spark: tuple[SettingView, ...]
    versions: Mapping[str, str]


def configuration_view(job: str, run: RunHome | None) -> ConfigurationView:
    """Read the last start of a run."""
    started = run.event_log().last("started") if run else None
    details = started.details if started else {}
    config = [
        _setting(str(one["name"]), str(one["value"]), str(one["origin"]))
        for one in details.get("config") or []
    ]
    if run is not None and not config:  # an older Headgate wrote only the params
        params = (details.get("params") or {}).items()
        config = [_setting(f"params.{name}", str(value), "flag") for name, value in params]
    always = [_setting(name, value, "headgate") for name, value in _ALWAYS.items()]
    storage = [_setting("checkpoints.storage", run.spark, "flag")] if run else []
    return ConfigurationView(
        job,
        run.id if run else None,
        started.at if started else None,
        (*always, *storage, *(s for s in config if s.name.startswith("checkpoints."))),
        tuple(s for s in config if s.name in ("restart.strategy", "parallelism", "master")),
        tuple(s for s in config if s.name.startswith("params.")),
        tuple(s for s in config if s.name.startswith("spark.")),
        {str(k): str(v) for k, v in (details.get("versions") or {}).items()},
    )


def _setting(name: str, value: str, origin: str) -> SettingView:
    text = value if origin == "reference" else shown(name, value)
    return SettingView(name, text, origin, _WORDS.get(origin, origin))
