"""Only the rooms of kinds know kinds: everything else asks an Operation or a connector.

Imports between rooms are checked by import-linter (`make lint`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import headgate.steps.known
from headgate.graph.kinds import KINDS

PACKAGE = Path(headgate.__file__).parent
OWN = ("steps", "connectors")
SYSTEMS = ("kafka", "pulsar", "pulsar+ssl")
SCHEMES = ("log", "files", "console", *SYSTEMS)
# `headgate broker start kafka` and the like: brokers are named by people, not looked up by kind.
BROKERS = ("brokers", "cli/brokers.py", "doctor/brokers.py", "testing/plugin.py")
# Texts of homes of format 1, in which kinds were all that there was.
FORMAT_1 = "graph/formats.py"
# durability="process" is a word of its own.
SETTINGS = "base/settings.py"
ROLES = {"source", "table", "sink"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(OWN):
            yield name, ast.parse(path.read_text())


def classes_of(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def operation_tests(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """Lines with an isinstance test on a class of these names."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id == "isinstance" and names & set(classes_of(node.args[1])):
            yield node.lineno


def compared_texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts that something is compared with, or looked up by."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                for part in ast.walk(side):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield node.lineno, part.value
        elif isinstance(node, ast.MatchValue) and isinstance(node.value, ast.Constant):
            yield node.lineno, str(node.value.value)


def prefix_texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts that something is tested to start with, or is cut off from or at."""
    names = ("startswith", "removeprefix", "partition", "split")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in names:
            for part in (part for given in node.args for part in ast.walk(given)):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield node.lineno, part.value


def is_scheme(text: str) -> bool:
    """Whether a text is the front of a system's addresses."""
    scheme, colon, _ = text.partition(":")
    return scheme in SCHEMES if colon else text in SYSTEMS


def test_nothing_outside_the_kinds_asks_which_operation_it_has() -> None:
    names = {"Operation", *(kind.__name__ for kind in KINDS.values())}
    found = [f"{name}:{line}" for name, tree in modules() for line in operation_tests(tree, names)]
    assert found == []


def test_nothing_outside_the_kinds_compares_the_name_of_a_kind() -> None:
    kinds = set(KINDS) - ROLES
    found = [
        f"{name}:{line}: {text!r}"
        for name, tree in modules()
        if name not in (FORMAT_1, SETTINGS)
        for line, text in compared_texts(tree)
        if text in kinds
    ]
    assert found == []


def test_nothing_outside_the_connectors_compares_the_name_of_a_system() -> None:
    found = [
        f"{name}:{line}: {text!r}"
        for name, tree in modules()
        if not name.startswith(BROKERS)
        for line, text in compared_texts(tree)
        if text in SYSTEMS
    ]
    assert found == []


def test_nothing_outside_the_connectors_looks_at_the_scheme_of_an_address() -> None:
    found = [
        f"{name}:{line}: {text!r}"
        for name, tree in modules()
        if not name.startswith(BROKERS)
        for line, text in (*compared_texts(tree), *prefix_texts(tree))
        if is_scheme(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text", ["a.startswith('log:')", "a.startswith(('x', 'pulsar'))", "a.removeprefix('kafka://')"]
)
def test_a_look_at_a_scheme_would_be_found(text: str) -> None:
    assert any(is_scheme(found) for _, found in prefix_texts(ast.parse(text)))


@pytest.mark.parametrize(
    "text", ["isinstance(x, LookupStep)", "isinstance(x, a.WindowStep | LookupStep)"]
)
def test_a_test_on_an_operation_would_be_found(text: str) -> None:
    assert list(operation_tests(ast.parse(text), {"LookupStep"})) == [1]


@pytest.mark.parametrize("text", ["kind == 'window'", "kind in ('a', 'window')"])
def test_a_compared_kind_would_be_found(text: str) -> None:
    assert (1, "window") in compared_texts(ast.parse(text))
