"""States and timers as handlers use them: loaded for one key after the other, changes noted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from headgate.steps.process.codecs import Codec, Scalar, TypeMistake
from headgate.steps.process.declare import DeclaredState, DeclaredTimer
from headgate.steps.process.handles import ListState, MapState, Timer, ValueState
from headgate.steps.process.remote import Large

EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def micros_of(at: datetime) -> int:
    """A time as microseconds since 1970, UTC; one without a zone is UTC.

    >>> micros_of(datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    if at.tzinfo is not None:
        at = at.astimezone(UTC).replace(tzinfo=None)
    return (at - EPOCH) // _MICROSECOND


def time_of(micros: int) -> datetime:
    """Microseconds since 1970 as a time; what no datetime can be is the least or greatest.

    >>> time_of(-(2**63)) == datetime.min
    True
    """
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return datetime.min if micros < 0 else datetime.max


_NOBODY = object()
"""In place of a key that no entry can have."""


def plain_kind(codec: Codec) -> type | None:
    """The class whose instances need no other check; None if there is none."""
    if type(codec) is not Scalar or codec.kind is int:
        return None
    return codec.kind


class _Live:
    def __init__(self, declared: DeclaredState) -> None:
        self._declared = declared
        self._codec = declared.value
        self._ok = declared.value.is_normal()
        # most states are plain values, whose check is not worth a call
        self._kind = plain_kind(declared.value)
        self._changed = 0

    def _kept(self, value: Any) -> Any:
        """A value as it is kept, of which nobody else has a part that can be changed."""
        value = value if self._ok(value) else self._normal(value)
        return self._codec.copy(value) if self._codec.changeable else value

    def _normal(self, value: Any) -> Any:
        if value is None:
            raise TypeMistake(f"the state '{self._declared.name}'", self._codec.name, value)
        return self._codec.normal(value, f"the state '{self._declared.name}'")


class LiveValue(_Live, ValueState[Any]):
    """The value of the key that is at work."""

    def __init__(self, declared: DeclaredState) -> None:
        super().__init__(declared)
        self._value: Any = None

    def load(self, value: Any) -> None:
        """Take the value that a key has."""
        self._value = value
        self._changed = 0

    def get(self) -> Any:
        return self._value

    def set(self, value: Any) -> None:
        if value.__class__ is self._kind or self._ok(value):
            self._value = value
        else:
            self._value = self._normal(value)
        self._changed = 1

    def clear(self) -> None:
        self._value = None
        self._changed = 1

    def mark(self) -> Any:
        """What `back` needs to undo all that comes."""
        return self._value, self._changed

    def back(self, mark: Any) -> None:
        """Undo what came since `mark`."""
        self._value, self._changed = mark


class LiveCopy(LiveValue):
    """A value that who has it can change: it is kept and given as a copy.

    So only what is set is kept, however many rows of the key are in the batch.
    """

    def get(self) -> Any:
        return self._codec.copy(self._value)

    def set(self, value: Any) -> None:
        super().set(value)
        self._value = self._codec.copy(self._value)


class Together:
    """All values of a function at once, by code that is made for their number.

    Handlers run for each row; this runs for each key, and is where most of a key's time went.
    """

    def __init__(self, values: Sequence[LiveValue]) -> None:
        names: dict[str, Any] = {f"v{n}": value for n, value in enumerate(values)}
        numbers = range(len(values))
        loads = [f" v{n}._value = a{n}; v{n}._changed = 0" for n in numbers]
        exec(
            "\n".join([f"def load({', '.join(f'a{n}' for n in numbers)}):", " pass", *loads]), names
        )
        self.load: Callable[..., None] = names["load"]
        """Take the values that a key has."""
        self.changed: Callable[[], Any] = eval(
            "lambda: " + (" or ".join(f"v{n}._changed" for n in numbers) or "False"), names
        )
        self.taken: Callable[[], tuple[Any, ...]] = eval(
            "lambda: (" + "".join(f"v{n}._value, " for n in numbers) + ")", names
        )
        self.empty = (None,) * len(values)


class LiveList(_Live, ListState[Any]):
    """The list of the key that is at work: what it had, and what was appended."""

    def __init__(self, declared: DeclaredState) -> None:
        super().__init__(declared)
        self._old: list[Any] | Large = []
        self._new: list[Any] = []
        self._cleared = False

    def load(self, values: list[Any] | Large) -> None:
        """Take the list that a key has."""
        self._old, self._new = values, []  # the last key's may still have to be written
        self._changed = 0
        self._cleared = False

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self._old, Large):
            self._old = [value for _, value in self._old.all()]
        values = chain(list(self._old), list(self._new)) if self._new else iter(list(self._old))
        return map(self._codec.copy, values) if self._codec.changeable else values

    def __len__(self) -> int:
        if self._declared.ttl is not None and isinstance(self._old, Large):
            iter(self)  # only all of them tell how many are over
        return self.held()

    def held(self) -> int:
        """How many entries there are, maybe with some that are over."""
        old = self._old
        return (old.size if isinstance(old, Large) else len(old)) + len(self._new)

    def append(self, value: Any) -> None:
        self._new.append(self._kept(value))
        self._changed = 1

    def extend(self, values: Sequence[Any]) -> None:
        self._new += [self._kept(v) for v in values]
        self._changed = 1

    def clear(self) -> None:
        self._old, self._new = [], []
        self._changed = 1
        self._cleared = True

    def mark(self) -> Any:
        """What `back` needs to undo all that comes."""
        return self._old, list(self._new), self._changed, self._cleared

    def back(self, mark: Any) -> None:
        """Undo what came since `mark`."""
        self._old, self._new, self._changed, self._cleared = mark


class LiveMap(_Live, MapState[Any, Any]):
    """The dict of the key that is at work, and which of its entries changed.

    Of a large one `_data` has the entries that were touched, `_absent` the names that it is known
    not to have, and `_unseen` counts the rest.
    """

    def __init__(self, declared: DeclaredState) -> None:
        super().__init__(declared)
        assert declared.key is not None
        self._keys = declared.key
        self._key_ok = declared.key.is_normal()
        self._key_kind = plain_kind(declared.key)
        self.load({})

    def load(self, data: dict[Any, Any] | Large) -> None:
        """Take the dict that a key has."""
        self._large = data if isinstance(data, Large) else None
        self._data: dict[Any, Any] = {} if isinstance(data, Large) else data
        self._unseen = data.size if isinstance(data, Large) else 0
        self._put: dict[Any, None] = {}
        self._gone: dict[Any, None] = {}
        self._absent: set[Any] = set()
        self._changed, self._cleared = 0, False

    def _fetch(self, key: Any) -> None:
        """Make sure that an entry is here, if there is one."""
        if self._large is None or key is _NOBODY or key in self._data or key in self._absent:
            return
        found = self._large.one(key)
        if found:
            self._data[key] = found[0]
            self._unseen -= 1
        else:
            self._absent.add(key)

    def _fetch_all(self) -> None:
        if self._large is not None:
            large, self._large = self._large, None
            for key, value in large.all():
                if key not in self._gone:
                    self._data.setdefault(key, value)
            self._unseen = 0

    def _name(self, key: Any) -> Any:
        """A key as it is kept; what no entry can be called is nobody's name."""
        if key.__class__ is self._key_kind or self._key_ok(key):
            return key
        try:
            return self._keys.normal(key, "")
        except TypeMistake:
            return _NOBODY

    def __getitem__(self, key: Any) -> Any:
        name = self._name(key)
        if self._large is not None:
            self._fetch(name)
        if name not in self._data:
            raise KeyError(key)
        value = self._data[name]
        return self._codec.copy(value) if self._codec.changeable else value

    def get(self, key: Any, default: Any = None) -> Any:
        name = self._name(key)
        if self._large is not None:
            self._fetch(name)
        if self._codec.changeable:
            return self._codec.copy(self._data[name]) if name in self._data else default
        return self._data.get(name, default)

    def __contains__(self, key: object) -> bool:
        name = self._name(key)
        if self._large is not None:
            self._fetch(name)
        return name in self._data

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._key_ok(key):
            key = self._keys.normal(key, f"a key of the state '{self._declared.name}'")
        value = self._kept(value)
        if self._large is not None:
            self._fetch(key)  # whether it is new decides how many there are
        self._data[key] = value
        self._put[key] = None
        self._gone.pop(key, None)
        self._changed = 1

    def __delitem__(self, key: Any) -> None:
        name = self._name(key)
        if self._large is not None:
            self._fetch(name)
        if name not in self._data:
            raise KeyError(key)
        del self._data[name]
        self._put.pop(name, None)
        self._gone[name] = None
        self._absent.add(name)
        self._changed = 1

    def __iter__(self) -> Iterator[Any]:
        self._fetch_all()
        # the store has its own order; sorted, a replay and a test see the same
        return iter(sorted(self._data))

    def __len__(self) -> int:
        if self._declared.ttl is not None:
            self._fetch_all()  # only all of them tell how many are over
        return self.held()

    def held(self) -> int:
        """How many entries there are, maybe with some that are over."""
        return len(self._data) + self._unseen

    def clear(self) -> None:
        self.load({})
        self._changed = 1
        self._cleared = True

    def mark(self) -> Any:
        """What `back` needs to undo all that comes."""
        return (
            dict(self._data), dict(self._put), dict(self._gone), set(self._absent), self._large,
            self._unseen, self._changed, self._cleared,
        )  # fmt: skip

    def back(self, mark: Any) -> None:
        """Undo what came since `mark`."""
        (
            self._data, self._put, self._gone, self._absent, self._large, self._unseen,
            self._changed, self._cleared,
        ) = mark  # fmt: skip


class LiveTimer(Timer):
    """The timer of the key that is at work, in microseconds."""

    def __init__(self, declared: DeclaredTimer) -> None:
        self._declared = declared
        self._at: int | None = None

    def set(self, at: datetime) -> None:
        if not isinstance(at, datetime):
            raise TypeMistake(f"the time of the timer '{self._declared.name}'", "datetime", at)
        self._at = micros_of(at)

    def cancel(self) -> None:
        self._at = None


def live_state(declared: DeclaredState) -> LiveValue | LiveList | LiveMap:
    """A state of the kind that was declared."""
    if declared.kind == "value":
        return LiveCopy(declared) if declared.value.changeable else LiveValue(declared)
    return LiveList(declared) if declared.kind == "list" else LiveMap(declared)
