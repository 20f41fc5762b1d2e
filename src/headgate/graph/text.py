"""A graph as text for people: a terminal outline and a Mermaid flowchart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.graph.model import Graph, Step

_SHAPES = {"source": ("([", "])"), "table": ("[(", ")]"), "sink": ("[[", "]]")}


def _label(step: Step) -> str:
    shown = {"on": step.labels.get("on"), "table": step.labels.get("table")}
    texts = [f"{name}={text}" for name, text in shown.items() if text]
    if step.address:
        texts.insert(0, f"address={step.address}")
    return f"{step.kind}" + (f" {', '.join(texts)}" if texts else "")


def outline(graph: Graph) -> str:
    """One line a step: its name, what it is, and where its rows come from."""
    width = max((len(s.id) for s in graph.steps), default=0)
    kinds = max((len(_label(s)) for s in graph.steps), default=0)
    lines = []
    for step in graph.steps:
        origin = ", ".join(
            e.step + (f".{e.output}" if e.output != "out" else "") for e in step.inputs
        )
        arrow = f"<- {origin}" if origin else ""
        lines.append(f"{step.id:<{width}}  {_label(step):<{kinds}}  {arrow}".rstrip())
    return "\n".join(lines)


def mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart, side outputs dotted."""
    numbers = {s.id: f"s{i}" for i, s in enumerate(graph.steps)}
    lines = ["flowchart LR"]
    for step in graph.steps:
        left, right = _SHAPES.get(step.role, ("[", "]"))
        lines.append(f'  {numbers[step.id]}{left}"{step.id}<br/><i>{step.kind}</i>"{right}')
    for step in graph.steps:
        for edge in step.inputs:
            arrow = "-->" if edge.output == "out" else f"-. {edge.output} .->"
            lines.append(f"  {numbers[edge.step]} {arrow} {numbers[step.id]}")
    return "\n".join(lines)
