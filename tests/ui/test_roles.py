"""Roles of steps, and that no other module of the web interface decides by kind."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import headgate.ui
from headgate.graph.model import Step
from headgate.ui.model.roles import (
    address_of,
    describe,
    has_event_time,
    is_entry,
    is_sink,
    labels_of,
    role_of,
    shape_of,
)
from headgate.ui.pages.collapse import collapse
from headgate.ui.pages.drawing import Drawing, Line, Node

UI = Path(headgate.ui.__file__).parent
KINDS = {"source", "table", "sink", "lookup", "window", "process", "union", "select", "where",
         "with_columns", "drop", "transform"}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "role", "shape"),
    [
        ("source", "source", "end"),
        ("table", "table", "end"),
        ("sink", "sink", "end"),
        ("lookup", "step", "inner"),
        ("union", "step", "inner"),
    ],
)
def test_a_step_has_one_role_in_every_form(kind: str, role: str, shape: str) -> None:
    step = Step("s", kind, named=True, role=role, address="log:x")
    for form in (step, step.to_json()):
        assert role_of(form) == role and shape_of(form) == shape
        assert is_sink(form) == (role == "sink")
        assert is_entry(form) == (role in ("source", "table"))
    node = Node("s", "any", role=role_of(step))
    assert role_of(node) == role and shape_of(node) == shape


def test_labels_are_what_people_read() -> None:
    step = Step("s", "lookup", named=True, labels={"on": "id", "missing": "drop"})
    assert labels_of(step) == {"on": "id", "missing": "drop"} and describe(step) == "on id"
    assert describe(Step("s", "x", named=True, labels={"size": "5"})) == "size 5"
    assert labels_of(Step("s", "x", named=True, address="log:a")) == {"address": "log:a"}
    source = {"role": "source", "address": "log:a", "labels": {"event_time": "at"}}
    assert address_of(source) == "log:a" and has_event_time(source)
    # a table forgets its rows by one
    assert has_event_time({**source, "role": "table"})
    assert not has_event_time({**source, "role": "sink"})
    assert not has_event_time({**source, "labels": {}})


def test_a_box_for_several_steps_keeps_a_role_that_they_share() -> None:
    nodes = (*(Node(f"in{i}", "source", role="source") for i in range(5)), Node("all", "union"))
    lines = tuple(Line(f"in{i}", "all") for i in range(5))
    drawn = {node.title: node.role for node in collapse(Drawing(nodes, lines), most=2).nodes}
    assert drawn == {"5 steps": "source", "all": "step"}


def test_no_other_module_compares_kinds() -> None:
    wrong = []
    for path in sorted(UI.rglob("*.py")):
        if path.name == "roles.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare | ast.MatchValue):
                words = {c.value for c in ast.walk(node) if isinstance(c, ast.Constant)}
                if words & KINDS:
                    wrong.append(f"{path.relative_to(UI)}:{node.lineno} {ast.unparse(node)}")
    assert not wrong
