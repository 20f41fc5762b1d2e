"""Whether rows still carry, to the step that needs it, what their source gave them.

Event time and position travel in hidden columns. Each kind says whether its rows have them
(`Operation.check_carried`); what it does not decide itself it asks of its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.errors import GraphError, user_location
from headgate.graph.hidden import EVENT_TIME, POSITION
from headgate.graph.plan import Node, Plan

_WHAT = {EVENT_TIME: "event time", POSITION: "place in a topic"}


@dataclass(frozen=True)
class Carrying:
    """Rows of a node, on their way to the step that needs a hidden column."""

    plan: Plan
    node: Node
    step: str
    """Who needs it."""
    may_lack: bool
    """Whether rows of windows, and of sources that are not topics, need not have it."""

    def check_input(self, input: int, name: str) -> None:
        """Raise if the rows of an input do not carry it."""
        edge = self.node.step.inputs[input]
        above = Carrying(self.plan, self.plan.node(edge.step), self.step, self.may_lack)
        above.node.operation.check_carried(above, edge.output, name)

    def any_input_has(self, name: str) -> bool:
        """Whether the rows of one of the inputs carry it."""
        return any(
            has_carried(self.plan, self.plan.node(edge.step), edge.output, name)
            for edge in self.node.step.inputs
        )

    def strictly(self) -> Carrying:
        """The same, where it must not lack."""
        return Carrying(self.plan, self.node, self.step, may_lack=False)

    def lost(self, why: str, remedy: str) -> GraphError:
        """The error for rows that do not carry it."""
        return GraphError(why, step=self.step, remedy=remedy, location=user_location())

    @staticmethod
    def what(name: str) -> str:
        """A hidden column as people know it."""
        return _WHAT[name]


def check_carried(
    plan: Plan, node: Node, output: str, step: str, name: str, *, may_lack: bool = False
) -> None:
    """Refuse a stream whose rows have lost what they carry, or never had it."""
    node.operation.check_carried(Carrying(plan, node, step, may_lack), output, name)


def has_carried(plan: Plan, node: Node, output: str, name: str) -> bool:
    """Whether the rows of a stream carry something."""
    try:
        check_carried(plan, node, output, "", name)
    except GraphError:
        return False
    return True
