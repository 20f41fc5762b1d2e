"""StepKind: a kind of step of a user's own, made of a process function.

A process function is one step of one job. A kind is a step that many jobs use: it has a name of
its own in graphs and on pages, settings that decide whether state fits, and labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from headgate.base.errors import GraphError, user_location
from headgate.graph.kinds import KINDS
from headgate.graph.operation import Fit
from headgate.graph.plan import Node
from headgate.graph.port import KeyedPort
from headgate.steps.process.add import add_process
from headgate.steps.process.function import Process
from headgate.steps.process.step import ProcessStep

ROWS = "rows"
"""The input of such a step: its handler is `on_rows`."""


class StepKind(ABC):
    """A kind of step to subclass; a job uses it as `stream.key_by(...).step(name, kind)`.

    >>> class Numbered(StepKind):
    ...     kind = "numbered"
    ...     def function(self) -> Process: ...
    >>> Numbered.kind in KINDS
    True
    """

    kind: ClassVar[str]
    """The name of the kind in graphs, records and on pages."""
    config_version: ClassVar[int] = 1
    _step: ClassVar[type[OwnStep]]

    def __init_subclass__(cls) -> None:
        name = cls.__dict__.get("kind")
        if name is None:
            return
        known = KINDS.get(name)
        if known is not None and not issubclass(known, OwnStep):
            raise GraphError(
                f"'{name}' is a kind of Headgate's own",
                remedy="give the kind another name",
                location=user_location(),
            )
        cls._step = type(
            f"{cls.__name__}Step",
            (OwnStep,),
            {"kind": name, "config_version": cls.config_version, "owner": cls},
        )

    @abstractmethod
    def function(self) -> Process:
        """The process function that does the work; it gets the rows in `on_rows`."""

    def config(self) -> Mapping[str, Any]:
        """Settings that identify the step and decide whether state fits: plain JSON values."""
        return {}

    def labels(self) -> Mapping[str, str]:
        """Descriptions of the step for people."""
        return {name: str(value) for name, value in self.config().items()}

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any]) -> Fit:
        """Whether state from an old config still fits a new one."""
        return Fit()


@dataclass(frozen=True)
class OwnStep(ProcessStep):
    """A process step that is one of a user's kinds."""

    own: StepKind
    owner: ClassVar[type[StepKind]]

    def config(self) -> Mapping[str, Any]:
        return {**super().config(), "own": dict(self.own.config())}

    def labels(self) -> Mapping[str, str]:
        return {"key": ", ".join(self.names), **self.own.labels()}

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        of_function = super().fits(old, new, gains)
        of_kind = cls.owner.fits(old["own"], new["own"])
        note = "; ".join(filter(None, (of_function.note, of_kind.note)))
        return Fit((*of_function.conflicts, *of_kind.conflicts), note)


def add_own_step(keyed: KeyedPort, name: str, kind: StepKind) -> Node:
    """Write a step of a user's kind down."""
    if not isinstance(kind, StepKind) or not hasattr(type(kind), "_step"):
        raise GraphError(
            "the kind of a step must be an object of a subclass of hg.StepKind that has a `kind`",
            step=name if isinstance(name, str) else None,
            got=repr(kind),
            remedy="see docs/extend.md",
            location=user_location(),
        )

    made = partial(type(kind)._step, own=kind)
    return add_process(
        keyed.port.plan, name, kind.function(), {ROWS: keyed}, "fail", operation=made
    )
