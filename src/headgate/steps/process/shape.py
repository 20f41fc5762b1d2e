"""What a process function declares, read from its class and checked before anything runs."""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import difflib
import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import StructField, StructType

from headgate.base.errors import GraphError, Location, user_location
from headgate.steps.process.arrow import DeclaredColumn
from headgate.steps.process.codecs import Codec
from headgate.steps.process.declare import (
    Declared,
    DeclaredState,
    DeclaredTimer,
    SideOutput,
    Tagged,
)
from headgate.steps.process.function import Process, around
from headgate.steps.process.records import Record, Struct
from headgate.steps.process.types import TYPES, UnknownType, codec_of

VALUE = "value"
"""The column of an output whose type is no dataclass."""


@dataclass(frozen=True)
class Handler:
    """A method for the rows of an input, or for a timer."""

    name: str
    row: Record | None
    """The dataclass of its rows; None if it takes them as Row."""
    location: Location | None

    @property
    def method(self) -> str:
        """The method's name."""
        return f"on_{self.name}"


@dataclass(frozen=True)
class Shape:
    """A process function's states, timers, outputs and handlers, in the order of their class."""

    name: str
    states: tuple[DeclaredState, ...]
    timers: tuple[DeclaredTimer, ...]
    sides: tuple[SideOutput[Any], ...]
    inputs: tuple[Handler, ...]
    output: Codec | None
    """What the handlers yield; None if they yield to side outputs only."""

    def state(self, name: str) -> DeclaredState:
        """The state of a name."""
        return next(s for s in self.states if s.name == name)

    def of_kind(self, *kinds: str) -> tuple[DeclaredState, ...]:
        """The states of some kinds."""
        return tuple(s for s in self.states if s.kind in kinds)

    @property
    def expires(self) -> bool:
        """Whether any state has a time to live."""
        return any(s.ttl is not None for s in self.states)


def columns_of(codec: Codec | None) -> StructType:
    """The columns of the rows that an output of this type gives."""
    if codec is None:
        return StructType()
    if isinstance(codec, Struct):
        return codec.spark
    return StructType([StructField(VALUE, codec.spark)])


def shape_of(function: Process, inputs: Sequence[str] | None = None) -> Shape:
    """Read and check a process function; without `inputs` all its handlers but timers' are some."""
    cls = type(function)
    if isinstance(function, type) and issubclass(function, Process):
        raise GraphError(
            f"{function.__name__} is a class",
            remedy=f"give an instance of it: {function.__name__}()",
            location=user_location(),
        )
    if not isinstance(function, Process):
        raise GraphError(
            "a process function must be an instance of a subclass of hg.Process",
            got=repr(function),
            remedy="make a class with handlers: class Count(hg.Process)",
            location=user_location(),
        )
    declared = declared_of(cls)
    for state in declared:
        if isinstance(state, DeclaredColumn):
            raise GraphError(
                f"'{state.name}' is for functions of batches, and {cls.__name__} is one of rows",
                remedy="use hg.value_state, or make the function a hg.ArrowProcess",
                location=state.location,
            )
    timers = tuple(d for d in declared if isinstance(d, DeclaredTimer))
    methods = handlers_of(cls)
    if inputs is None:
        rank = _order(cls)
        inputs = sorted(methods.keys() - {t.name for t in timers}, key=lambda n: rank(f"on_{n}"))
    check_handlers(cls, methods, inputs, timers)
    hints = {name: _hints(cls, name, method) for name, method in methods.items()}
    shape = Shape(
        cls.__name__,
        tuple(d for d in declared if isinstance(d, DeclaredState)),
        timers,
        tuple(d for d in declared if isinstance(d, SideOutput)),
        tuple(_input(cls, name, methods[name], hints[name]) for name in inputs),
        _output(cls, methods, hints),
    )
    _check_yields(cls)
    return shape


def handlers_of(cls: type) -> dict[str, Any]:
    """The methods that handle something, by what they handle."""
    return {
        name.removeprefix("on_"): method
        for name, method in inspect.getmembers(cls, callable)
        if name.startswith("on_")
    }


def declared_of(cls: type) -> list[Declared]:
    """What a class and its bases declare."""
    found: dict[str, Declared] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Declared):
                found[name] = value
            else:
                found.pop(name, None)
    return list(found.values())


def _order(cls: type) -> Callable[[str], int]:
    names = [name for base in reversed(cls.__mro__) for name in vars(base)]
    return lambda name: names.index(name)


def location_of(method: Any) -> Location | None:
    """Where a method is."""
    code = getattr(inspect.unwrap(method), "__code__", None)
    return Location(code.co_filename, code.co_firstlineno) if code else None


def check_handlers(
    cls: type,
    methods: dict[str, Any],
    inputs: Sequence[str],
    timers: Sequence[DeclaredTimer],
) -> None:
    """Refuse handlers that are missing, too many, or take other arguments than they are given."""
    clocks = {t.name: t for t in timers}
    for name in inputs:
        if name in clocks:
            raise GraphError(
                f"'{name}' is both an input and a timer of {cls.__name__}",
                remedy="rename one of the two",
                location=clocks[name].location,
            )
        if name not in methods:
            raise GraphError(
                f"{cls.__name__} has no handler for the input '{name}'",
                expected=f"a method on_{name}(self, row, ctx)",
                got=", ".join(f"on_{m}" for m in methods) or "no handler at all",
                remedy="add it, or rename the input",
                location=class_location(cls),
            )
    for name, declared in clocks.items():
        if name not in methods:
            raise GraphError(
                f"{cls.__name__} has no handler for the timer '{name}'",
                expected=f"a method on_{name}(self, ctx)",
                remedy="add it, or leave the timer out",
                location=declared.location,
            )
    for name, method in methods.items():
        known = [*inputs, *clocks]
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise GraphError(
                f"{cls.__name__}.on_{name} handles neither an input nor a timer",
                expected="one of " + ", ".join(f"on_{k}" for k in known),
                remedy=f"did you mean on_{near[0]}?" if near else "rename or remove it",
                location=location_of(method),
            )
        wanted = ("self", "ctx") if name in clocks else ("self", "row", "ctx")
        try:
            inspect.signature(method).bind(*wanted)
        except TypeError:
            raise GraphError(
                f"{cls.__name__}.on_{name} must take ({', '.join(wanted)})",
                got=str(inspect.signature(method)),
                remedy="give it these parameters",
                location=location_of(method),
            ) from None
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise GraphError(
                f"{cls.__name__}.on_{name} is async",
                remedy="make it a plain method or generator",
                location=location_of(method),
            )


def class_location(cls: type) -> Location | None:
    """Where a class is."""
    try:
        _, line = inspect.getsourcelines(cls)
        return Location(inspect.getfile(cls), line)
    except (OSError, TypeError):
        return user_location()


def _hints(cls: type, name: str, method: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(inspect.unwrap(method), localns=around(cls))
    except NameError as error:
        raise GraphError(
            f"an annotation of {cls.__name__}.on_{name} uses a name that is not known: {error}",
            remedy="define or import it where the class is",
            location=location_of(method),
        ) from None


def _input(cls: type, name: str, method: Any, hints: dict[str, Any]) -> Handler:
    parameters = list(inspect.signature(method).parameters)
    hint = hints.get(parameters[1], Any) if len(parameters) > 1 else Any
    if hint is Any or hint is Row:
        return Handler(name, None, location_of(method))
    if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        raise GraphError(
            f"the rows of {cls.__name__}.on_{name} must be a dataclass or Row",
            got=getattr(hint, "__name__", str(hint)),
            remedy="change the annotation",
            location=location_of(method),
        )
    codec = _codec(cls, name, method, hint)
    assert isinstance(codec, Record)
    return Handler(name, codec, location_of(method))


def _codec(cls: type, name: str, method: Any, hint: Any) -> Codec:
    try:
        return codec_of(hint, among=around(cls))
    except (UnknownType, NameError) as error:
        place = error.at if isinstance(error, UnknownType) else ""
        raise GraphError(
            f"{cls.__name__}.on_{name} has a type that no column can have"
            + (f": the field {place}" if place else ""),
            expected=TYPES,
            got=error.hint if isinstance(error, UnknownType) else str(error),
            remedy="change the type",
            location=location_of(method),
        ) from None


def _output(cls: type, methods: dict[str, Any], hints: dict[str, dict[str, Any]]) -> Codec | None:
    """The one type that handlers yield beside tagged values."""
    found: tuple[Any, str] | None = None
    for name, method in methods.items():
        if "return" not in hints[name]:
            raise GraphError(
                f"{cls.__name__}.on_{name} must be annotated with what it gives",
                expected="-> hg.Out[...], or -> None",
                remedy="annotate it: the columns of the output are made from it",
                location=location_of(method),
            )
        returned = hints[name]["return"]
        if returned is type(None) and inspect.isgeneratorfunction(inspect.unwrap(method)):
            raise GraphError(
                f"{cls.__name__}.on_{name} yields, but its annotation says that it gives nothing",
                expected="-> hg.Out[...]",
                got="-> None",
                remedy="name the type of what it yields",
                location=location_of(method),
            )
        for hint in _yielded(returned):
            if hint is Any:
                raise GraphError(
                    f"{cls.__name__}.on_{name} must be annotated with what it gives",
                    expected="-> hg.Out[...], or -> None",
                    got=str(returned),
                    remedy="name the type of its values",
                    location=location_of(method),
                )
            if found is not None and found[0] != hint:
                raise GraphError(
                    f"{cls.__name__}.on_{name} must give the same type as on_{found[1]}",
                    expected=_text(found[0]),
                    got=_text(hint),
                    remedy="let all handlers give the same type, and use side outputs for others",
                    location=location_of(method),
                )
            found = (hint, name)
    return None if found is None else _codec(cls, found[1], methods[found[1]], found[0])


def _yielded(returned: Any) -> Iterator[Any]:
    """The types in `Iterator[A | Tagged[Any]]` but the tagged; nothing in None."""
    if returned in (None, type(None)):
        return
    origin, arguments = typing.get_origin(returned), typing.get_args(returned)
    iterables = (
        collections.abc.Iterator,
        collections.abc.Iterable,
        collections.abc.Generator,
        list,
    )
    if origin in iterables and arguments:
        yield from _parts(arguments[0])
    elif origin in (typing.Union, types.UnionType):
        for argument in arguments:
            yield from _yielded(argument)
    else:
        yield Any


def _parts(hint: Any) -> Iterator[Any]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for argument in typing.get_args(hint):
            yield from _parts(argument)
    elif hint is not Tagged and typing.get_origin(hint) is not Tagged and hint is not type(None):
        yield hint


def _text(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _check_yields(cls: type) -> None:
    """Refuse `yield self.x(...)` where no x is declared: it would fail on the first such row."""
    for base in cls.__mro__:
        if base is Process or not issubclass(base, Process):
            continue
        try:
            lines, first = inspect.getsourcelines(base)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, TypeError, SyntaxError):
            continue
        set_here = {
            n.attr
            for n in ast.walk(tree)
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
        }
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Yield) and isinstance(node.value, ast.Call)):
                continue
            called = node.value.func
            if not (isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)):
                continue
            if called.value.id == "self" and not hasattr(cls, called.attr):
                if called.attr in set_here:
                    continue
                sides = [d.name for d in declared_of(cls) if isinstance(d, SideOutput)]
                near = difflib.get_close_matches(called.attr, sides, n=1)
                raise GraphError(
                    f"{cls.__name__} has no side output '{called.attr}'",
                    expected="one of " + ", ".join(sides) if sides else "none is declared",
                    remedy=f"did you mean '{near[0]}'?"
                    if near
                    else f"declare it: {called.attr} = hg.side_output(...)",
                    location=Location(inspect.getfile(base), first + node.lineno - 1),
                )
