"""What must hold of all rows of a window step, whatever the truth says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from tests.steps.window_cases import Config, CountTruth
from tests.steps.window_truth import Event, Result, Truth


def check_rows(config: Config, truth: Truth | CountTruth, sent: int) -> None:
    """Rows that were found equal to the truth's: nothing is lost, nothing is told twice."""
    ids = 3 + config.aggregates.index("ids")
    if not config.counts:
        on_time = Counter(row[:3] for row in truth.out if row[-2] == "on_time")
        assert set(on_time.values()) <= {1}, config
    last = [row for n, row in enumerate(truth.out) if not _again(config, row, truth.out[n + 1 :])]
    rows = Counter(id for row in (truth.out if config.discarding else last) for id in row[ids])
    rows.update(truth.late)
    assert set(rows) == set(range(sent)), config
    if config.kind in ("tumbling", "session", "count"):
        assert set(rows.values()) == {1}, config
    else:
        assert set(rows) & set(truth.late) == set(truth.late)
        most = -(-config.size // config.slide)
        assert max(rows.values()) <= most, config


def _again(config: Config, row: Result, later: Sequence[Result]) -> bool:
    """Whether a later row tells the same window, or the session that it has become."""
    if config.counts:
        return False
    if config.kind != "session":
        return any(row[:3] == other[:3] for other in later)
    return any(row[0] == other[0] and other[1] <= row[1] and row[2] <= other[2] for other in later)


def final_rows(config: Config, events: Sequence[Event]) -> set[Result]:
    """What on-time rows must say in the end, whatever the batches were: disorder is bounded."""
    windows: dict[tuple[str, float, float], list[Event]] = defaultdict(list)
    if config.kind == "session":
        for key in {event[1] for event in events}:
            mine = sorted((e for e in events if e[1] == key and e[2] is not None), key=_time)
            group: list[Event] = []
            for event in mine:
                if group and _time(event) - _time(group[-1]) > config.size:
                    windows[key, _time(group[0]), _time(group[-1]) + config.size] = group
                    group = []
                group.append(event)
            if group:
                windows[key, _time(group[0]), _time(group[-1]) + config.size] = group
    else:
        truth = config.truth()
        assert isinstance(truth, Truth)
        for event in events:
            for end in [] if event[2] is None else truth.ends(event[2]):
                windows[event[1], end - config.size, end].append(event)
    # events come in the order of their ids
    return {(*window, *config.evaluate(sorted(rows))) for window, rows in windows.items()}


def _time(event: Event) -> float:
    assert event[2] is not None
    return event[2]


def check_final_rows(config: Config, truth: Truth | CountTruth, events: Sequence[Event]) -> None:
    """With disorder inside the bound: the on-time rows by a reference without batches."""
    assert set(truth.late) == {event[0] for event in events if event[2] is None}
    assert not any(row[-2] == "late" for row in truth.out)
    if not config.discarding:
        on_time = [row[:-2] for row in truth.out if row[-2] == "on_time"]
        assert Counter(on_time) == Counter(final_rows(config, events)), config
