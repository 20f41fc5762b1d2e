"""Adds to a finished job what collects its dead letters and takes them back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headgate.connectors.base import Source
from headgate.connectors.dead_letters import DeadLetterTopic, ReplayTopic
from headgate.graph.carried import has_carried
from headgate.graph.hidden import CARRIED
from headgate.graph.letters import Letters
from headgate.graph.model import Edge
from headgate.graph.operation import Shape
from headgate.graph.plan import Node, Plan
from headgate.graph.port import Port
from headgate.steps.dead_letters.letter import LETTER, LetterStep
from headgate.steps.dead_letters.replay import ReplayStep
from headgate.steps.sink import add_sink
from headgate.steps.source.step import MALFORMED, MALFORMED_LETTERS, SourceStep
from headgate.steps.stateless.union import add_union

SINK = "dead_letters"


def collect(plan: Plan, topic: DeadLetterTopic) -> None:
    """Send the rows of side outputs that would be lost to a topic, and read it for replays.

    A source's letters come back as records, which are decoded again; a lookup's as rows of its
    stream. What follows a step sees both in a union, so that no step of the job changes.
    """
    letters = []
    for made in list(_lost(plan)):
        step, output = made.step, made.output
        letters.append(_letter(plan, step, output, made))
        changes = plan.node(step).changes is not None  # a change of the past would undo later ones
        if made.what.replay is not None and topic.replays is not None and not changes:
            again = _replayed(plan, made, topic.replays)
            what = replace(made, what=MALFORMED_LETTERS, carried=())
            letters.append(_letter(plan, again, "malformed", what))
    if not letters:
        return
    ports = [Port(plan, plan.node(name)) for name in letters]
    last = ports[0] if len(ports) == 1 else Port(plan, add_union(ports[0], ports[1:]))
    add_sink(last, SINK, topic)


def _lost(plan: Plan) -> Iterator[LetterStep]:
    """What makes letters of the side outputs that nobody reads, of steps that run."""
    read = {(edge.step, edge.output) for node in plan.nodes for edge in node.step.inputs}
    running = {step for step, _ in read}
    for node in plan.nodes:
        for output in node.step.side_outputs:
            what = node.operation.letters(output)
            if what is not None and (node.step.id, output) not in read and node.step.id in running:
                yield _letter_step(plan, node, output, what)


def _letter_step(plan: Plan, node: Node, output: str, what: Letters) -> LetterStep:
    """What makes letters of an output, with what they can tell of where its rows came from."""
    origins = _origins(plan, node)
    source = origins[0].operation.source if len(origins) == 1 else None
    told = isinstance(source, Source) and source.positions_are_offsets
    carried = tuple(name for name in CARRIED if _comes(plan, node, output, name))
    return LetterStep(
        plan.job,
        node.step.id,
        output,
        what,
        source.describe() if isinstance(source, Source) and told else None,
        carried,
    )


def _letter(plan: Plan, step: str, output: str, operation: LetterStep) -> str:
    """Write down what makes letters of an output's rows."""
    made = plan.add(
        plan.unnamed(step, "letter"),
        operation,
        {"out": LETTER},
        inputs=[Edge(step, output)],
        named=False,
    )
    _put(plan, _located(made, plan.node(operation.step)))
    return made.step.id


def _replayed(plan: Plan, of: LetterStep, reads: ReplayTopic) -> str:
    """Write down what reads letters again, and let it come to who reads the rows."""
    node, as_records = plan.node(of.step), of.what.replay == "record"
    edge = Edge(node.step.id) if as_records else node.step.inputs[0]
    beside = plan.node(edge.step)
    readers = [n.step.id for n in plan.nodes if edge in n.step.inputs] if as_records else [of.step]
    carries = tuple(c for c in CARRIED if has_carried(plan, beside, edge.output, c))
    operation = ReplayStep(reads, plan.job, of.step, of.output, of.topic or "", carries)
    if isinstance(node.operation, SourceStep):
        operation = replace(operation, of=node.operation)
    name = f"{node.step.id}.replay"
    plan.check_name(name, "replay")
    again = plan.add(
        name,
        operation,
        {"out": beside.schemas[edge.output], "malformed": MALFORMED},
        outputs=("out", "malformed"),
    )
    both = add_union(Port(plan, again), [Port(plan, beside, edge.output)])
    for reader in readers:
        now = plan.node(reader)
        inputs = tuple(Edge(both.step.id) if e == edge else e for e in now.step.inputs)
        _put(plan, replace(now, step=replace(now.step, inputs=inputs)))
    place = 1 + [n.step.id for n in plan.nodes].index(beside.step.id)
    del plan.nodes[-2:]
    plan.nodes[place:place] = [_located(again, node), _located(both, node)]
    return name


def _put(plan: Plan, node: Node) -> None:
    """Write a step down in another form."""
    plan.nodes = [node if n.step.id == node.step.id else n for n in plan.nodes]


def _located(node: Node, place: Node) -> Node:
    """A step of ours was written where that is for which it is there."""
    return replace(node, step=replace(node.step, location=place.step.location))


def _origins(plan: Plan, node: Node) -> list[Node]:
    """The sources of a step's rows."""
    return [n for n in _before(plan, node) if n.operation.shape is Shape.ORIGIN]


def _comes(plan: Plan, node: Node, output: str, name: str) -> bool:
    """Whether rows can carry a hidden column to an output without a change to any state."""
    stateful = [n for n in _before(plan, node) if n.operation.shape is Shape.STATEFUL]
    free = all(n.operation.passes_rows for n in stateful)
    return free and node.operation.passes_rows and has_carried(plan, node, output, name)


def _before(plan: Plan, node: Node) -> list[Node]:
    """A step and all steps before it, without tables."""
    found: dict[str, Node] = {}
    ahead = [node]
    while ahead:
        one = ahead.pop()
        if one.operation.shape is not Shape.TABLE:
            found[one.step.id] = one
            ahead += [plan.node(e.step) for e in one.step.inputs if e.step not in found]
    return list(found.values())
