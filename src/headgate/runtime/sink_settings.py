"""What a run's sinks were set to, kept beside the run: markers are found by it.

Delivery, marker topic and options are no part of the graph. If one is changed between a crash and
the next start, the new setting would not find the markers of a batch that is out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.base.secrets import shown
from headgate.connectors.clusters import servers_of, with_servers
from headgate.graph.formats import with_address
from headgate.home.files import read_json, write_json
from headgate.home.layout import RunHome
from headgate.home.versions import VERSION, check_version

_ASKED_BY = ("delivery", "marker_topic")
"""What decides where markers are."""
_ADDRESSES = ("bootstrap.servers", "url")
"""They are in the graph, or known by what they lead to."""


@dataclass(frozen=True)
class SinkSettings:
    """The settings of all sinks of a job, and the ids of the Kafka clusters that it uses."""

    sinks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    """By the list of servers that leads there."""

    @staticmethod
    def of(spec: Mapping[str, Any], clusters: Mapping[str, str]) -> SinkSettings:
        """From the options of the kernel's writer."""
        groups: list[object] = []
        sinks = {}
        for sink in spec["sinks"]:
            settings = {name: sink[name] for name in ("kind", *_ASKED_BY) if name in sink}
            access = sink.get("client") or sink.get("access") or {}
            settings["options"] = {
                name: shown(name, str(value))
                for name, value in sorted(access.items())
                if name not in _ADDRESSES
            }
            if "client" in sink:
                # sinks of one group share transactions and markers, see KafkaGroup.scala
                shared = (sink["client"], *(sink.get(name) for name in _ASKED_BY))
                if shared not in groups:
                    groups.append(shared)
                settings["group"] = groups.index(shared)
            sinks[str(sink["name"])] = settings
        return SinkSettings(sinks, dict(clusters))

    @staticmethod
    def read(run: RunHome) -> SinkSettings:
        """What the run was started with last; nothing if it is of a version that kept none."""
        data = read_json(run.files, _path(run))
        if data is None:
            return SinkSettings()
        check_version(data, "sinks.json")
        return SinkSettings(data["sinks"], data["clusters"])

    def write(self, run: RunHome) -> None:
        """Keep the settings, and what was known of clusters."""
        before = SinkSettings.read(run)
        kept = SinkSettings(self.sinks, {**before.clusters, **self.clusters})
        if kept != before:
            data = {"version": VERSION, "sinks": kept.sinks, "clusters": kept.clusters}
            write_json(run.files, _path(run), data)

    def changes(self, before: SinkSettings) -> list[str]:
        """What is other than before, in words, for sinks that both have."""
        return [
            f"sink '{name}' has {_difference(before.sinks[name], settings)}"
            for name, settings in self.sinks.items()
            if name in before.sinks and before.sinks[name] != settings
        ]

    def asked_by(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The options with which the kernel finds the markers that these settings wrote."""
        sinks = [
            {
                **sink,
                **{
                    name: value
                    for name, value in self.sinks.get(sink["name"], {}).items()
                    if name in _ASKED_BY and name in sink
                },
            }
            for sink in spec["sinks"]
        ]
        return {**spec, "sinks": sinks}


def with_new_servers(
    old: Mapping[str, Any], new: Mapping[str, Any], before: SinkSettings, now: SinkSettings
) -> dict[str, Any]:
    """An old graph (as JSON) with the servers of the new one where they are the same cluster."""
    addresses = {step["id"]: step["address"] for step in new["steps"]}

    def moved(step: Mapping[str, Any]) -> Mapping[str, Any]:
        address, after = step["address"], addresses.get(step["id"], "")
        servers = servers_of(after)
        cluster = before.clusters.get(servers_of(address))
        if cluster is None or cluster != now.clusters.get(servers):
            return step
        return with_address(step, with_servers(address, servers))

    return {**old, "steps": [moved(step) for step in old["steps"]]}


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The first setting that differs, in words.

    >>> _difference({"delivery": "exactly_once"}, {"delivery": "at_least_once"})
    'delivery at_least_once, and had exactly_once'
    """
    names: Sequence[str] = sorted({*old, *new} - {"options"})
    for name in names:
        if old.get(name) != new.get(name):
            return f"{name} {new.get(name)}, and had {old.get(name)}"
    before, after = old.get("options", {}), new.get("options", {})
    name = next(n for n in sorted({*before, *after}) if before.get(n) != after.get(n))
    return f"the option {name} {after.get(name, 'no more')}, and had {before.get(name, 'none')}"


def _path(run: RunHome) -> str:
    return f"{run.path}/sinks.json"
