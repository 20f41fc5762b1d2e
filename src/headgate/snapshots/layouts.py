"""How the state of a step is laid out, and what a changed layout means for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Layout: TypeAlias = Mapping[str, Any]
"""One store of a step, as the kernel describes it: name, key and value types, encoder."""


_END = "expires"
# stores and columns that the states and timers of a process function need beside their own
_BESIDE = ("expiry", "sweep.at", "event_timers", "processing_timers")
_TABLE = (["row"], ["row", _END])
"""The columns of a table's rows, which may be forgotten."""
_IN_ARRAY = ["event_time", "number", "matched", "row"]
"""What a join keeps of a row: users know the columns in the last of them."""
_TABLE_TIMES = {f"column {_END} TIMESTAMP", "store expiry"}


@dataclass(frozen=True)
class Difference:
    """What becomes of a step's state under another layout."""

    gains: tuple[str, ...] = ()
    loses: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    one_zero: bool = False
    """Whether floating numbers in keys were kept as they came: 0.0 and -0.0 were two keys."""
    times: bool = False
    """Whether times of a table's rows come or go: the kind of the step says what that means."""
    places: bool = False
    """Whether every partition has all of the rows now, or only before."""

    @property
    def same(self) -> bool:
        """Whether the state can be used as it is."""
        named = self.gains or self.loses or self.conflicts
        return not (named or self.one_zero or self.times or self.places)

    def __add__(self, other: Difference) -> Difference:
        return Difference(
            self.gains + other.gains,
            self.loses + other.loses,
            self.conflicts + other.conflicts,
            self.one_zero or other.one_zero,
            self.times or other.times,
            self.places or other.places,
        )


def compare(old: Sequence[Layout], new: Sequence[Layout]) -> Difference:
    """Compare the stores of a step by name.

    >>> text = {"type": "struct", "fields": [{"name": "a", "type": "long"}]}
    >>> more = {"type": "struct", "fields": [*text["fields"], {"name": "b", "type": "string"}]}
    >>> store = {"name": "default", "key": text, "encoder": "plain", "partition_by": [0]}
    >>> compare([{**store, "value": text}], [{**store, "value": more}]).gains
    ('column b STRING',)
    """
    before = {str(store["name"]): store for store in old}
    after = {str(store["name"]): store for store in new}
    found = Difference(
        gains=tuple(f"store {name}" for name in after if name not in before),
        loses=tuple(f"store {name}" for name in before if name not in after),
    )
    for name in (name for name in before if name in after):
        was, is_ = before[name], after[name]
        if type_name(was["key"]) != type_name(is_["key"]):
            found += Difference(conflicts=(_keys(was, is_),))
        elif any(was.get(part) != is_.get(part) for part in ("encoder", "columns", "partition_by")):
            found += Difference(conflicts=(f"store {name} is kept in another order",))
        found += Difference(places=bool(was.get("replicated")) != bool(is_.get("replicated")))
        found += Difference(one_zero=is_.get("floats") is not None and was.get("floats") is None)
        if _holds_entries(was) and _holds_entries(is_):
            found += _values(_entry(was), _entry(is_), "")
        else:
            found += _values(was["value"], is_["value"], "")
    return _as_users_know_it(found, after)


def _as_users_know_it(found: Difference, after: Mapping[str, Layout]) -> Difference:
    """The difference by the states of process functions, without what is kept beside them.

    Where a time to live is gone, nothing would tell any more which values are over.
    """
    if _TABLE_TIMES & {*found.gains, *found.loses}:
        found = replace(
            found,
            gains=tuple(text for text in found.gains if text not in _TABLE_TIMES),
            loses=tuple(text for text in found.loses if text not in _TABLE_TIMES),
            times=True,
        )
    kept = {str(field["name"]) for store in after.values() for field in store["value"]["fields"]}
    kept |= set(after)
    lost = {text.split()[1] for text in found.loses}
    loses, conflicts = [], list(found.conflicts)
    for text in found.loses:
        name = text.split()[1]
        state, dot, what = name.rpartition(".")
        if dot and what == _END and state in kept:
            conflicts.append(
                f"state {state} has no time to live any more, and what was over would come back: "
                "make it longer instead"
            )
        elif name not in _BESIDE and not (what in (_END, "entries", "next") and state in lost):
            loses.append(text)
    return replace(found, loses=tuple(loses), conflicts=tuple(conflicts))


def _keys(was: Layout, is_: Layout) -> str:
    """What has changed in the keys of a store."""
    before, after = was["key"], is_["key"]
    of_key, of_new = before["fields"][:-1], after["fields"][:-1]
    if _holds_entries(was) and _holds_entries(is_) and of_key == of_new:
        return f"state {was['name']} was {_collection(before)} and is now {_collection(after)}"
    return f"key {type_name(before)} is now {type_name(after)}"


def _collection(key: Any) -> str:
    """What a process function's state is whose entries have this key."""
    last = key["fields"][-1]
    return "a list" if last["name"] == "number" else f"a map with keys {type_name(last['type'])}"


def _holds_entries(store: Layout) -> bool:
    """Whether it has the entries of a process function's list or map."""
    last = store["key"]["fields"][-1]["name"]
    return last in ("number", "entry") and store["value"]["fields"][0]["name"] == "value"


def _entry(store: Layout) -> Any:
    """An entry's columns by names that users know: that of the state instead of `value`."""
    value, *more = store["value"]["fields"]
    more = [{**field, "name": f"{store['name']}.{field['name']}"} for field in more]
    return {"type": "struct", "fields": [{**value, "name": store["name"]}, *more]}


def rows_of(kind: Any) -> Any:
    """The type of the rows that lie in an array of a join's state; None for another type."""
    if isinstance(kind, str) or kind["type"] != "array" or not _is_struct(kind["elementType"]):
        return None
    fields = {field["name"]: field["type"] for field in kind["elementType"]["fields"]}
    return fields["row"] if list(fields) == _IN_ARRAY else None


def _values(old: Any, new: Any, path: str) -> Difference:
    if path and rows_of(old) is not None and rows_of(new) is not None:
        old, new = rows_of(old), rows_of(new)
    if not (_is_struct(old) and _is_struct(new)):
        if type_name(old) == type_name(new):
            return Difference()
        text = f"{path or 'value'} {type_name(old)} is now {type_name(new)}"
        return Difference(conflicts=(f"column {text}",))
    before = {field["name"]: field["type"] for field in old["fields"]}
    after = {field["name"]: field["type"] for field in new["fields"]}
    # the one field around a table's row is ours; users know the columns in it
    wrapped = not path and all(list(names) in _TABLE for names in (before, after))
    found = Difference()
    for name, kind in after.items():
        at = "" if wrapped and name == "row" else f"{path}.{name}".lstrip(".")
        if name not in before:
            found += Difference(gains=(f"column {at} {type_name(kind)}",))
        else:
            found += _values(before[name], kind, at)
    for name in before:
        if name not in after:
            at = f"{path}.{name}".lstrip(".")
            found += Difference(loses=(f"column {at} {type_name(before[name])}",))
    if found.same and list(before) != list(after):
        found += Difference(gains=("another order of its columns",))
    return found


def type_name(kind: Any) -> str:
    """A type of a StructType's JSON as SQL says it.

    >>> type_name({"type": "array", "elementType": "long", "containsNull": True})
    'ARRAY<BIGINT>'
    """
    if isinstance(kind, str):
        return {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}.get(
            kind, kind.upper()
        )
    if kind["type"] == "struct":
        inner = ", ".join(f"{f['name']}: {type_name(f['type'])}" for f in kind["fields"])
        return f"STRUCT<{inner}>"
    if kind["type"] == "array":
        return f"ARRAY<{type_name(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"MAP<{type_name(kind['keyType'])}, {type_name(kind['valueType'])}>"
    return str(kind["type"]).upper()


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, Mapping) and kind.get("type") == "struct"
