"""What a process function declares: states, timers and side outputs."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from headgate.base.durations import Duration, parse_duration
from headgate.base.errors import GraphError, Location, user_location
from headgate.steps.process.codecs import Codec, Scalar
from headgate.steps.process.handles import ListState, MapState, Timer, ValueState
from headgate.steps.process.types import TYPES, UnknownType, codec_of

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Clock: TypeAlias = Literal["event", "processing"]


class Tagged(Generic[T]):
    """A value for a side output.

    >>> Tagged("unpaid", 7)
    unpaid(7)
    """

    __slots__ = ("output", "value")

    def __init__(self, output: str, value: T) -> None:
        self.output, self.value = output, value

    def __repr__(self) -> str:
        return f"{self.output}({self.value!r})"


class Declared:
    """Something that a class of process functions declares; it is named by its attribute."""

    def __init__(self) -> None:
        self.name = ""
        self.location: Location | None = user_location()

    def __set_name__(self, owner: type, name: str) -> None:
        if self.name and self.name != name:
            raise GraphError(
                f"'{name}' and '{self.name}' are the same declaration",
                remedy="declare each by itself",
                location=self.location,
            )
        if name.startswith("_") or name in _TAKEN:
            raise GraphError(
                f"'{name}' cannot be the name of a state, timer or side output",
                remedy="choose another name",
                location=self.location,
            )
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"'{self.__dict__.get('name')}' has no '{name}' here: states and timers can be used in "
            "handlers only, when the function runs in a job or in a ProcessDriver"
        )


_TAKEN = ("open", "close", "default", "event_timers", "processing_timers", "expiry")


class DeclaredState(Declared):
    """A state: its kind (value, list or map), the types of its values, how long they are kept."""

    def __init__(
        self, kind: str, value: Codec, key: Codec | None = None, ttl: Duration | None = None
    ) -> None:
        super().__init__()
        self.kind, self.value, self.key = kind, value.kept(), key
        self.ttl: timedelta | None = None if ttl is None else parse_duration(ttl, what="ttl")
        if self.ttl == timedelta(0):
            raise GraphError(
                "ttl must be greater than zero", remedy="leave it out", location=self.location
            )


class DeclaredTimer(Declared):
    """A timer and its clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock


class SideOutput(Declared, Generic[T]):
    """A named output beside the main one: call it with a value, and yield the result.

    >>> class Sort(hg.Process):
    ...     odd = hg.side_output(int)
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[int]:
    ...         yield self.odd(row.n) if row.n % 2 else row.n
    >>> driver = ProcessDriver(Sort())
    >>> driver.send("rows", {"n": 3}, key=1), driver.send("rows", {"n": 4}, key=1)
    ([], [4])
    >>> driver.side("odd")
    [3]
    """

    def __init__(self, value: Codec) -> None:
        super().__init__()
        self.value = value

    def __call__(self, value: T) -> Tagged[T]:
        """The value, to be yielded."""
        return Tagged(self.name, value)


def value_state(type: type[T], *, ttl: Duration | None = None) -> ValueState[T]:
    """Declare one value per key.

    With `ttl`, a value is forgotten this long after it was set, by processing time.

    >>> class Last(hg.Process):
    ...     last = hg.value_state(int, ttl="1 hour")
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> None:
    ...         self.last.set(row.n)
    >>> driver = ProcessDriver(Last())
    >>> driver.send("rows", {"n": 5}, key=1), driver.state("last", key=1)
    ([], 5)
    >>> driver.advance_processing_time("1 hour"), driver.state("last", key=1)
    ([], None)
    """
    return cast(
        ValueState[T], DeclaredState("value", declared_codec(type, "value_state"), None, ttl)
    )


def list_state(type: type[T], *, ttl: Duration | None = None) -> ListState[T]:
    """Declare one list per key.

    With `ttl`, each value is forgotten this long after it was appended, by processing time.

    >>> class Payments(hg.Process):
    ...     payments = hg.list_state(float, ttl="7 days")
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> None:
    ...         self.payments.append(row.amount)
    >>> driver = ProcessDriver(Payments())
    >>> driver.send("rows", {"amount": 9.5}, key=1), driver.state("payments", key=1)
    ([], [9.5])
    """
    return cast(ListState[T], DeclaredState("list", declared_codec(type, "list_state"), None, ttl))


def map_state(key: type[K], value: type[V], *, ttl: Duration | None = None) -> MapState[K, V]:
    """Declare one dict per key, whose entries are stored one by one.

    With `ttl`, each entry is forgotten this long after it was set, by processing time.

    >>> class Paid(hg.Process):
    ...     paid_by = hg.map_state(str, float)
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> None:
    ...         self.paid_by[row.card] = row.amount
    >>> driver = ProcessDriver(Paid())
    >>> driver.send("rows", {"card": "visa", "amount": 9.5}, key=1)
    []
    >>> driver.state("paid_by", key=1)
    {'visa': 9.5}
    """
    keys = declared_codec(key, "map_state")
    if not isinstance(keys, Scalar) or keys.kind is float:
        raise GraphError(
            "the keys of map_state must be bool, int, str, bytes, datetime, date or Decimal",
            got=keys.name,
            remedy="use another type for the keys",
            location=user_location(),
        )
    declared = DeclaredState("map", declared_codec(value, "map_state"), keys, ttl)
    return cast(MapState[K, V], declared)


def timer(clock: Clock = "event") -> Timer:
    """Declare a timer by event time or by processing time.

    >>> class Timeout(hg.Process):
    ...     silence = hg.timer("processing")
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> None:
    ...         self.silence.set(ctx.processing_time + timedelta(minutes=5))
    ...     def on_silence(self, ctx: hg.Context) -> hg.Out[str]:
    ...         yield f"nothing from {ctx.key[0]}"
    >>> driver = ProcessDriver(Timeout())
    >>> driver.send("rows", {}, key="Ann"), driver.advance_processing_time("5 minutes")
    ([], ['nothing from Ann'])
    """
    if clock not in ("event", "processing"):
        raise GraphError(
            "a timer's clock must be 'event' or 'processing'",
            got=repr(clock),
            remedy="write hg.timer('event') or hg.timer('processing')",
            location=user_location(),
        )
    return cast(Timer, DeclaredTimer(clock))


def side_output(type: type[T]) -> SideOutput[T]:
    """Declare an output beside the main one: `yield self.<name>(value)` sends a value there.

    >>> class Check(hg.Process):
    ...     unpaid = hg.side_output(int)
    ...     def on_orders(self, order: Row, ctx: hg.Context) -> hg.Out[int]:
    ...         yield order.id if order.paid else self.unpaid(order.id)
    >>> driver = ProcessDriver(Check())
    >>> driver.send("orders", {"id": 7, "paid": False}, key=7), driver.side("unpaid")
    ([], [7])
    """
    return SideOutput(declared_codec(type, "side_output"))


def declared_codec(hint: Any, what: str) -> Codec:
    """The codec of a type that a class declares, which a user wrote two frames above."""
    body = sys._getframe(2)  # of the class that declares it
    outside = body.f_back.f_locals if body.f_back else {}
    try:
        return codec_of(hint, among={**outside, **body.f_locals})
    except UnknownType as error:
        where = f"the field {error.at}" if error.at else what
        raise GraphError(
            f"{where} has a type that cannot be stored",
            expected=TYPES,
            got=error.hint,
            remedy="change the type",
            location=user_location(),
        ) from None
    except NameError as error:
        raise GraphError(
            f"the type {hint} of {what} uses a name that is not known: {error}",
            remedy="define it before the process function",
            location=user_location(),
        ) from None
