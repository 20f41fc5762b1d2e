"""Views and their JSON: the type of each time says its form, and REST serves that form."""

from __future__ import annotations

import typing
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter

import headgate.ui.app  # noqa: F401 imports every view
from headgate.ui.model.view import FlinkDuration, FlinkTime, IsoTime, Seconds, View, json_name


def views(root: type[View] = View) -> list[type[View]]:
    found = [view for view in root.__subclasses__() if view.__module__.startswith("headgate.")]
    return [view for one in found for view in (one, *views(one))]


def plain_types(hint: Any) -> set[Any]:
    """The types in a hint, without those that carry a JSON form."""
    if typing.get_origin(hint) is typing.Annotated:
        return set()
    args = typing.get_args(hint)
    return {kind for one in args for kind in plain_types(one)} if args else {hint}


@pytest.mark.parametrize("view", views(), ids=lambda view: view.__name__)
def test_no_view_has_a_time_without_a_form(view: type[View]) -> None:
    hints = typing.get_type_hints(view, include_extras=True)
    for one in fields(view):
        assert not plain_types(hints[one.name]) & {datetime, timedelta}, one.name


def test_times_have_the_form_that_their_type_says() -> None:
    @dataclass(frozen=True)
    class Times(View):
        begun: FlinkTime | None = field(metadata=json_name("start-time"))
        took: FlinkDuration
        at: IsoTime
        waited: Seconds
        never: IsoTime | None

    Times.__annotations__ = typing.get_type_hints(Times, localns=locals(), include_extras=True)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    times = Times(at, timedelta(seconds=2), at, timedelta(milliseconds=1500), None)
    adapter = TypeAdapter(Times)
    assert adapter.dump_python(times, mode="json", by_alias=True) == {
        "start-time": 1767225600000,
        "took": 2000,
        "at": "2026-01-01T00:00:00.000Z",
        "waited": 1.5,
        "never": None,
    }
    described = adapter.json_schema(mode="serialization")["properties"]
    assert described["start-time"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert described["at"]["format"] == "date-time" and described["waited"]["type"] == "number"
