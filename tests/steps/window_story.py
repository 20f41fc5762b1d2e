"""A job of random windows driven through batches, crashes and restores, compared with the truth."""

from __future__ import annotations

import copy
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import pytest

import headgate as hg
from headgate.connectors import log
from headgate.snapshots.spark_log import read_entry
from headgate.testing import CrashPoint, JobDriver
from tests.steps.test_window import VISIT, record
from tests.steps.window_cases import CLOCK, DELAY, Config, CountTruth
from tests.steps.window_truth import NEVER, START, Event, Result, Truth

SOURCE = "visits"


def job_of(configs: Sequence[Config]) -> hg.JobDef:
    @hg.job("random")
    def define(job: hg.Job) -> None:
        visits = job.source(
            SOURCE,
            hg.topic("log:visits", schema=VISIT),
            event_time=hg.event_time("at", out_of_orderness=f"{DELAY} s"),
        )
        for number, config in enumerate(configs):
            made = visits.key_by("page").window(
                f"w{number}", config.window(), *config.columns(), **config.options()
            )
            made.sink(f"out{number}", hg.topic("log:out"))
            if not config.counts:
                made.late.sink(f"late{number}", hg.topic("log:late"))

    return define


@dataclass(frozen=True)
class Batch:
    """What a batch of the job was, by its records."""

    id: int
    watermark: float
    at: int
    ended: bool
    events: list[Event]


@dataclass
class Line:
    """The truth along a line of checkpoints: where a restore goes back to."""

    truths: list[Truth | CountTruth]
    batches: list[Batch] = field(default_factory=list)


class Story:
    """A job and its truth. What is compared is all that came out since the last time."""

    def __init__(self, configs: Sequence[Config], *, parallelism: int, partitions: int = 1) -> None:
        self.configs = configs
        self.partitions = partitions
        self.sent: list[list[Event]] = [[] for _ in range(2)]
        self.line = Line([config.truth() for config in configs])
        self.kept: dict[str, Line] = {}
        self.driver = JobDriver(job_of(configs), parallelism=parallelism)

    def send(self, events: Iterable[Event]) -> None:
        parts = defaultdict(list)
        for event in events:
            parts[ord(event[1]) % self.partitions].append(event)
        for part, mine in parts.items():
            self.driver.send(SOURCE, *[record(e) for e in mine], partition=part)
            self.sent[part] += mine

    def run(self, *, drain: bool = False) -> None:
        self.driver.run(drain=drain)
        self.compare()

    def restore(self, checkpoint: str, parallelism: int) -> None:
        """Go back to an earlier checkpoint: what came after it comes again."""
        self.driver.restore(checkpoint, parallelism=parallelism)
        self.line = copy.deepcopy(self.kept[checkpoint])

    def compare(self) -> None:
        """Tell the truth of the batches that were run since, and hold the rows against it."""
        before = [(len(t.out), len(t.late)) for t in self.line.truths]
        for batch in self._new_batches():
            for truth in self.line.truths:
                truth.batch(batch.events, ended=batch.ended, at=batch.at)
            self.line.batches.append(batch)
            self.kept[f"{self.driver._run_home.id}/ck:{batch.id}"] = copy.deepcopy(self.line)
        for number, (config, truth) in enumerate(zip(self.configs, self.line.truths, strict=True)):
            rows, lost = before[number]
            got = [_result(config, row) for row in self.driver.rows(f"out{number}")]
            self._same(config, f"the rows of w{number}", truth.out[rows:], got)
            late = [] if config.counts else self.driver.rows(f"late{number}")
            gone = self._records(truth.late[lost:])
            self._same(config, f"the late rows of w{number}", gone, [_late(row) for row in late])

    def _records(self, ids: Iterable[int]) -> list[Event]:
        found = {event[0]: event for part in self.sent for event in part}
        return [found[id] for id in ids]

    def _new_batches(self) -> list[Batch]:
        home = self.driver._run_home
        done = self.line.batches[-1].id if self.line.batches else -1
        found = []
        for kept in home.checkpoints():
            if kept.id <= done:
                continue
            entry = read_entry(home, kept.id)
            assert entry is not None and entry.batch_time_ms is not None
            offsets = kept.sources[SOURCE]
            events = [
                event
                for part, sent in enumerate(self.sent)
                for event in sent[_offset(offsets.start, part) : _offset(offsets.end, part)]
            ]
            mark = entry.watermark_ms
            found.append(
                Batch(
                    kept.id,
                    NEVER if mark is None else mark / 1000 - START,
                    entry.batch_time_ms // 1000,
                    any('"drained":true' in line for line in entry.lines),
                    events,
                )
            )
        assert [b.id for b in found] == [done + 1 + n for n in range(len(found))]
        return found

    def _same(
        self, config: Config, what: str, wanted: Sequence[Result], got: Sequence[Result]
    ) -> None:
        at = 0 if "late" not in what else 1
        want, have = Counter(wanted), Counter(got)
        if want == have:
            return
        wrong = next(iter((want - have) + (have - want)))
        key = wrong[0] if at == 0 else wrong[1]
        pytest.fail(self.told(config, key, what, want - have, have - want))

    def told(
        self, config: Config, key: str, what: str, missing: Counter[Any], extra: Counter[Any]
    ) -> str:
        """A key's case, as a person reads it."""
        lines = [
            f"{what} are not those of the truth, for the key {key!r} among others",
            str(config),
        ]
        for batch in self.line.batches:
            mine = [e for e in batch.events if e[1] == key]
            end = ", event time ends" if batch.ended else ""
            lines.append(
                f"batch {batch.id}, watermark {batch.watermark}{end}, at {batch.at}: {mine}"
            )
        lines.append("rows are (key, start, end, " + ", ".join(config.aggregates) + ", by, pane)")
        lines += [f"  missing {row} x{n}" for row, n in missing.items() if key in row]
        lines += [f"  not due {row} x{n}" for row, n in extra.items() if key in row]
        return "\n".join(lines)

    def check_end(self, sent: int) -> None:
        """After a drain: no state, all rows counted, and each in a result or late."""
        kept = self.driver._run_home.latest_checkpoint()
        assert kept is not None
        for number, (config, truth) in enumerate(zip(self.configs, self.line.truths, strict=True)):
            step = f"w{number}"
            assert kept.state[step]["rows"] == 0
            for store in config.stores():
                assert self.driver.state(step, store).all() == [], (config, store)
            counts = self.driver.metrics(step)
            assert counts["records_in"] == sent
            assert counts["records_out"] == len(truth.out)
            if not config.counts:
                assert counts["records_out_late"] == len(truth.late)
            check_rows(config, truth, sent)


def _offset(offsets: Mapping[str, Any], partition: int) -> int:
    return int(offsets.get(str(partition), 0))


def _seconds(time: Any) -> int | None:
    return None if time is None else round(time.timestamp()) - START


def _result(config: Config, row: dict[str, Any]) -> Result:
    assert row["is_partial"] == (row["fired_by"] == "early")
    values = [tuple(v) if isinstance(v := row[a], list) else v for a in config.aggregates]
    start, end = _seconds(row["window_start"]), _seconds(row["window_end"])
    return (row["page"], start, end, *values, row["fired_by"], row["pane"])


def _late(row: dict[str, Any]) -> Event:
    return row["id"], row["page"], _seconds(row["at"]), row["value"]


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
    windows: dict[tuple[str, int, int], list[Event]] = defaultdict(list)
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
    return {(*window, *config.evaluate(rows)) for window, rows in windows.items()}


def _time(event: Event) -> int:
    assert event[2] is not None
    return event[2]


def check_final_rows(config: Config, truth: Truth | CountTruth, events: Sequence[Event]) -> None:
    """With disorder inside the bound: the on-time rows by a reference without batches."""
    assert set(truth.late) == {event[0] for event in events if event[2] is None}
    assert not any(row[-2] == "late" for row in truth.out)
    if not config.discarding:
        on_time = [row[:-2] for row in truth.out if row[-2] == "on_time"]
        assert Counter(on_time) == Counter(final_rows(config, events)), config


@dataclass(frozen=True)
class Plot:
    """What happens to a job; all of it follows from the seed."""

    seed: int
    configs: int
    keys: str
    rows: int

    def play(self) -> int:
        """Live through it; gives how many cases, each a key's stream and a step, were compared."""
        from tests.steps.window_cases import random_configs, random_stream

        dice = random.Random(self.seed)
        inside = dice.random() < 0.4
        configs = random_configs(dice, self.configs)
        stream = random_stream(dice, self.keys, self.rows, inside=inside)
        story = Story(
            configs,
            parallelism=dice.choice([1, 2, 3]),
            partitions=1 if inside else dice.choice([1, 2]),
        )
        share = -(-len(stream) // 3)
        with pytest.MonkeyPatch.context() as patch, story.driver as driver:
            patch.setattr(log, "MAX_RECORDS", str(dice.randint(share // 2, share)))
            for at in range(0, len(stream), share):
                last = at + share >= len(stream)
                if last and dice.random() < 0.7:
                    back = dice.choice(list(story.kept))
                    story.restore(back, parallelism=dice.choice([1, 2, 4]))
                if dice.random() < 0.3:
                    driver.advance_processing_time(f"{CLOCK} s")
                story.send(stream[at : at + share])
                if dice.random() < 0.4:
                    driver.crash(at=dice.choice(get_args(CrashPoint))).restore()
                story.run(drain=last)
            story.check_end(len(stream))
            if inside:
                for config, truth in zip(configs, story.line.truths, strict=True):
                    if not config.counts:
                        check_final_rows(config, truth, stream)
        return len({(config, key) for config in configs for key in {e[1] for e in stream}})
