"""Large lists and maps: what is not touched is not asked for, and all else is as in a dict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

import headgate as hg
from headgate.steps.process.declare import DeclaredState
from headgate.steps.process.live import LiveList, LiveMap
from headgate.steps.process.remote import Large


class Store:
    """Entries that are elsewhere; it notes what is asked for."""

    def __init__(self, entries: dict[int, str]) -> None:
        self.entries = entries
        self.asked: list[list[int]] = []

    def large(self) -> Large:
        return Large(len(self.entries), self._ask)

    def _ask(self, wanted: Sequence[Any]) -> Any:
        self.asked.append(list(wanted))
        names = wanted or sorted(self.entries)
        return [(n, self.entries[n]) for n in names if n in self.entries]


def live_map(store: Store) -> LiveMap:
    live = LiveMap(cast(DeclaredState, hg.map_state(int, str)))
    live.load(store.large())
    return live


def test_an_entry_is_read_without_the_others() -> None:
    store = Store({n: f"v{n}" for n in range(1000)})
    live = live_map(store)
    assert live[7] == "v7" and live.get(7) == "v7" and 2000 not in live
    live[8] = "new"
    live[3000] = "more"
    del live[9]
    assert store.asked == [[7], [2000], [8], [3000], [9]]
    assert len(live) == 1000
    assert (live._put.keys(), live._gone.keys()) == ({8, 3000}, {9})
    assert list(live)[-1] == 3000 and 9 not in list(live)
    assert store.asked[5:] == [[]]


_OPS = st.tuples(
    st.sampled_from(["get", "put", "delete", "contains", "len", "list", "clear", "pop"]),
    st.integers(0, 8),
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.integers(0, 8), st.text(max_size=2), min_size=1), st.lists(_OPS))
def test_a_large_map_is_a_dict(start: dict[int, str], ops: list[tuple[str, int]]) -> None:
    store, model = Store(dict(start)), dict(start)
    live = live_map(store)
    for number, (op, key) in enumerate(ops):
        if op == "get":
            assert live.get(key) == model.get(key)
        elif op == "put":
            live[key] = model[key] = str(number)
        elif op == "delete" and key in model:
            del live[key], model[key]
        elif op == "contains":
            assert (key in live) == (key in model)
        elif op == "len":
            assert len(live) == len(model)
        elif op == "list":
            assert list(live.items()) == sorted(model.items())
        elif op == "clear":
            live.clear()
            model.clear()
        elif op == "pop":
            assert live.pop(key, None) == model.pop(key, None)
    assert len(live) == len(model)
    # what is written makes the store what the dict is
    left = {} if live._cleared else dict(start)
    for key in live._gone:
        left.pop(key, None)
    assert {**left, **{k: live._data[k] for k in live._put}} == model


def test_appending_to_a_large_list_reads_nothing() -> None:
    store = Store({n: f"v{n}" for n in range(100)})
    live = LiveList(cast(DeclaredState, hg.list_state(str)))
    live.load(store.large())
    live.append("last")
    assert len(live) == 101 and store.asked == []
    assert list(live) == [f"v{n}" for n in range(100)] + ["last"]
    assert next(iter(live)) == "v0" and store.asked == [[]]
