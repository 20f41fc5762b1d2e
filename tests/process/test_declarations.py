"""Mistakes in process functions, each told before anything runs, with its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

import headgate as hg
from headgate.base.errors import GraphError
from headgate.steps.process.shape import columns_of, shape_of


@dataclass
class Seen:
    page: str
    times: int


class Good(hg.Process):
    seen = hg.value_state(int, ttl="1 hour")
    pages = hg.map_state(str, Seen)
    tick = hg.timer("processing")
    odd = hg.side_output(str)

    def on_visits(self, visit: Seen, ctx: hg.Context) -> hg.Out[Seen]:
        yield visit

    def on_tick(self, ctx: hg.Context) -> hg.Out[Seen]:
        yield self.odd("x")


class Plain(hg.Process):
    def on_visits(self, visit: Seen, ctx: hg.Context) -> hg.Out[str]:
        yield visit.page


def test_the_shape_is_that_of_the_class() -> None:
    class More(Plain):
        tick = hg.timer("processing")
        odd = hg.side_output(str)

        def on_users(self, row, ctx) -> None: ...  # type: ignore[no-untyped-def]

        def on_tick(self, ctx: hg.Context) -> hg.Out[str]:
            yield self.odd("x")

    shape = shape_of(More())
    assert [(h.name, h.row and h.row.kind) for h in shape.inputs] == [
        ("visits", Seen),
        ("users", None),
    ]
    assert columns_of(shape.output).simpleString() == "struct<value:string>"
    assert [t.clock for t in shape.timers] == ["processing"]
    assert [s.name for s in shape.sides] == ["odd"]


def _no_handler() -> None:
    shape_of(Plain(), ["visits", "orders"])


def _extra_handler() -> None:
    class Extra(Plain):
        def on_visit(self, row: Seen, ctx: hg.Context) -> hg.Out[str]:
            yield "x"

    shape_of(Extra(), ["visits"])


def _no_timer_handler() -> None:
    class Late(Plain):
        deadline = hg.timer("event")

    shape_of(Late(), ["visits"])


def _wrong_parameters() -> None:
    class Wrong(Plain):
        tick = hg.timer()

        def on_tick(self, row: Seen, ctx: hg.Context) -> hg.Out[str]:
            yield "x"

    shape_of(Wrong(), ["visits"])


def _no_output_type() -> None:
    class Silent(hg.Process):
        def on_visits(self, visit: Seen, ctx: hg.Context):  # type: ignore[no-untyped-def]
            yield visit

    shape_of(Silent(), ["visits"])


def _two_output_types() -> None:
    class Two(Plain):
        def on_more(self, visit: Seen, ctx: hg.Context) -> hg.Out[Seen]:
            yield visit

    shape_of(Two(), ["visits", "more"])


def _undeclared_side() -> None:
    class Undeclared(Plain):
        late = hg.side_output(str)

        def on_visits(self, visit: Seen, ctx: hg.Context) -> hg.Out[str]:
            yield self.lates("x")  # type: ignore[attr-defined]

    shape_of(Undeclared(), ["visits"])


def _wrong_row() -> None:
    class Wrong(hg.Process):
        def on_visits(self, visit: int, ctx: hg.Context) -> hg.Out[str]:
            yield "x"

    shape_of(Wrong(), ["visits"])


def _wrong_state() -> None:
    hg.value_state(object)


def _wrong_map_key() -> None:
    hg.map_state(float, int)


def _wrong_clock() -> None:
    hg.timer("event time")  # type: ignore[arg-type]


def _class_given() -> None:
    shape_of(Plain)  # type: ignore[arg-type]


def _name_taken() -> None:
    class Taken(Plain):
        open = hg.value_state(int)  # type: ignore[assignment]


def _async() -> None:
    class Later(hg.Process):
        async def on_visits(self, visit: Seen, ctx: hg.Context) -> None: ...

    shape_of(Later(), ["visits"])


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (_no_handler, "Plain has no handler for the input 'orders' (expected a method on_orders"),
        (_extra_handler, "Extra.on_visit handles neither an input nor a timer (expected one of "
                         "on_visits): did you mean on_visits?"),
        (_no_timer_handler, "Late has no handler for the timer 'deadline'"),
        (_wrong_parameters, "Wrong.on_tick must take (self, ctx), got (self, row: 'Seen', ctx"),
        (_no_output_type, "Silent.on_visits must be annotated with what it gives"),
        (_two_output_types, "must give the same type as on_"),
        (_undeclared_side, "Undeclared has no side output 'lates' (expected one of late): did you "
                           "mean 'late'?"),
        (_wrong_row, "the rows of Wrong.on_visits must be a dataclass or Row, got int"),
        (_wrong_state, "value_state has a type that cannot be stored (expected bool, int"),
        (_wrong_map_key, "the keys of map_state must be bool, int"),
        (_wrong_clock, "a timer's clock must be 'event' or 'processing'"),
        (_class_given, "Plain is a class: give an instance of it: Plain()"),
        (_name_taken, "'open' cannot be the name of a state, timer or side output"),
        (_async, "Later.on_visits is async"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(mistake: Callable[[], None], said: str) -> None:
    with pytest.raises((GraphError, RuntimeError)) as caught:
        mistake()
    error = caught.value if isinstance(caught.value, GraphError) else caught.value.__cause__
    assert isinstance(error, GraphError)
    assert said in str(error)
    assert error.location is not None and error.location.file == __file__


def test_states_are_of_no_use_outside_a_run() -> None:
    with pytest.raises(AttributeError, match="'seen' has no 'get' here"):
        Good().seen.get()
