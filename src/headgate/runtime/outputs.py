"""Who writes a job's outputs, and what its sinks have: checked before anything is read."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headgate.base.errors import JobFailedError, RefusedError
from headgate.base.secrets import shown
from headgate.connectors.base import OutputOwner, Sink, Source
from headgate.graph.formats import same
from headgate.home.layout import JobHome, RunHome
from headgate.runtime.sink_position import Marker
from headgate.runtime.sink_settings import SinkSettings, with_new_servers

if TYPE_CHECKING:
    from headgate.compile import CompiledJob
    from headgate.compile.sinks import Writer


def writer_of(run: RunHome) -> Writer:
    """Who a run's sinks write as."""
    from headgate.compile.sinks import Writer

    record = run.read()
    return Writer(
        job=run.job.name,
        run=run.id,
        uid=record.uid,
        journal=run.journal,
        owner=run.job.own_id(),
        home=_place(run.job),
        out_until=record.out_until,
    )


class Outputs:
    """The outputs of a compiled job, for the job of a home."""

    def __init__(self, compiled: CompiledJob, job: JobHome) -> None:
        self._compiled = compiled
        self._spark = compiled.frame.sparkSession
        self._job = job
        self._clusters: dict[str, str] | None = None

    def check(self, *, take_over: bool) -> None:
        """Refuse outputs that a job of the same name in another home writes."""
        from headgate.compile.sinks import Writer

        writer = Writer(
            self._job.name, "", "", "", owner=self._job.own_id(), home=_place(self._job)
        )
        others = self._others(writer)
        if take_over or not others:
            return
        sink, other = next(iter(sorted(others.items())))
        addresses = {s.id: s.address or s.id for s in self._compiled.graph.steps}
        raise RefusedError(
            f"{addresses[sink]} is written by the job '{self._job.name}' of another home, "
            f"{other['home']}: two would write its rows twice and end each other's transactions",
            step=sink,
            remedy="start that one, or start this one under another --name; if that one will not "
            "run again, pass --take-over",
        )

    def take_over(self, run: RunHome) -> str | None:
        """Make the outputs this home's; whose they were, in words."""
        from headgate import jvm

        writer = writer_of(run)
        others = self._others(writer)
        if not others:
            return None
        with _explained():
            jvm.take_over(self._spark, json.dumps(self._compiled.spec(writer)))
        self._own(writer)
        homes = sorted({other["home"] for other in others.values()})
        return f"{', '.join(sorted(others))}: taken over from {', '.join(homes)}"

    def _others(self, writer: Writer) -> dict[str, dict[str, str]]:
        """By sink, the owner of its output that is not this job."""
        from headgate import jvm

        with _explained():
            others = jvm.other_owners(self._spark, json.dumps(self._compiled.spec(writer)))
        for name, sink in self._compiled.sinks.by_name.items():
            found = sink.owner(writer.job)
            if found is not None and found.id != writer.owner:
                others[name] = {"owner": found.id, "home": found.home}
        return others

    def _own(self, writer: Writer) -> None:
        """Write this job down where the kernel does not when it writes."""
        owner = OutputOwner(writer.owner, writer.home)
        for sink in self._compiled.sinks.by_name.values():
            sink.set_owner(writer.job, owner)

    def markers(self, run: RunHome) -> Mapping[str, Sequence[Marker]]:
        """By sink, the newest batches of a run that it has.

        Read through the new graph: what it has no sink for it cannot write again either. But with
        the settings of the run: its markers are where those say.
        """
        from headgate import jvm

        spec = SinkSettings.read(run).asked_by(self._compiled.spec(writer_of(run)))
        with _explained():
            found = jvm.sink_markers(self._spark, json.dumps(spec))
        return {sink: [Marker.from_json(data) for data in of] for sink, of in found.items()}

    def changes(self, run: RunHome) -> Sequence[str]:
        """What is set otherwise in sinks of the run, in words."""
        return self._settings(run).changes(SinkSettings.read(run))

    def known_as(self, run: RunHome, graph: Mapping[str, Any]) -> Mapping[str, Any]:
        """A graph of the run with the servers of this one where they are the same cluster."""
        before = SinkSettings.read(run)
        if not before.clusters:
            return graph
        new = self._compiled.graph.to_json()
        return with_new_servers(graph, new, before, self._settings(run))

    def same_graph(self, run: RunHome) -> bool:
        """Whether the run's graph is this one but for other servers of the same Kafka clusters."""
        return same(self.known_as(run, run.graph()), self._compiled.graph)

    def remember(self, run: RunHome) -> None:
        """Keep the settings with which the run goes on; its outputs are this job's from now on."""
        self._settings(run).write(run)
        self._own(writer_of(run))

    def _settings(self, run: RunHome) -> SinkSettings:
        if self._clusters is None:
            connectors = [*self._compiled.sources.values(), *self._compiled.sinks.by_name.values()]
            with _explained():
                found = [c.cluster(self._spark) for c in connectors if isinstance(c, Source | Sink)]
            self._clusters = dict(each for each in found if each is not None)
        return SinkSettings.of(self._compiled.spec(writer_of(run)), self._clusters)


@contextmanager
def _explained() -> Iterator[None]:
    """Say why a broker did not answer as a failure of the job says it."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from headgate import jvm

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        failure = jvm.explain_failure(error)
        raise JobFailedError(
            failure.sentence, code=failure.reason.name, step=failure.step, remedy=failure.remedy
        ) from error


def _place(job: JobHome) -> str:
    """Where a home is, for people who may be elsewhere."""
    local = job.files.local()
    return shown("home", job.home.url) if local is None else f"{socket.gethostname()}:{local}"
