"""Which lookups hold the watermark while rows wait in them: those with windows or timers behind."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.graph.check import behind, goes_by_event_time
from headgate.graph.plan import BuiltJob, LookupOp


def holding_steps(job: BuiltJob) -> Iterator[str]:
    """The steps whose waiting rows would else be late for what follows."""
    for node in job.nodes:
        operation = node.operation
        if not isinstance(operation, LookupOp) or not operation.missing.startswith("wait"):
            continue
        if operation.holds and any(goes_by_event_time(n) for n in behind(job.nodes, node)):
            yield node.step.id
