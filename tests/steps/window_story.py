"""A job of random windows driven through batches, crashes and restores, compared with the truth."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import pytest

import headgate as hg
from headgate.connectors.log import connector as log
from headgate.snapshots.spark_log import read_entry
from headgate.testing import CrashPoint, JobDriver
from tests.steps.test_window import VISIT, record
from tests.steps.window_cases import (
    CLOCK,
    DELAY,
    Config,
    CountTruth,
    by_clock,
    random_configs,
    random_stream,
)
from tests.steps.window_checks import check_final_rows, check_rows
from tests.steps.window_truth import NEVER, START, Event, Result, Truth

SOURCE = "visits"
COLUMNS = ("page", "window_start", "window_end", "is_partial", "fired_by", "pane")


def job_of(configs: Sequence[Config]) -> hg.JobDef:
    @hg.job("random")
    def define(job: hg.Job) -> None:
        visits = job.source(
            SOURCE,
            hg.topic("log:visits", schema=VISIT),
            event_time=hg.event_time("at", out_of_orderness=f"{DELAY} s"),
        )
        # two sinks for all steps: each one more makes every step's rows wider
        reported: list[hg.Stream] = []
        late: list[hg.Stream] = []
        for number, config in enumerate(configs):
            made = visits.key_by("page").window(
                f"w{number}", config.window(), *config.columns(), **config.options()
            )
            got = f"to_json(struct({', '.join(config.aggregates)})) AS got"
            reported.append(made.select(f"'w{number}' AS step", *COLUMNS, got))
            if not config.counts and not config.processing:
                late.append(made.late.select(f"'w{number}' AS step", "*"))
        reported[0].union(*reported[1:]).sink("out", hg.topic("log:out"))
        late[0].union(*late[1:]).sink("late", hg.topic("log:late"))

    return define


@dataclass(frozen=True)
class Batch:
    """What a batch of the job was, by its records."""

    id: int
    watermark: float
    at: float
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
        self.got: list[list[Result]] = [[] for _ in configs]
        self.late: list[list[Event]] = [[] for _ in configs]
        self.driver = JobDriver(job_of(configs), parallelism=parallelism)

    def send(self, events: Iterable[Event]) -> None:
        parts = defaultdict(list)
        for event in events:
            parts[sum(map(ord, event[1])) % self.partitions].append(event)
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
        got, late = _by_step(self.driver.rows("out")), _by_step(self.driver.rows("late"))
        for number, (config, truth) in enumerate(zip(self.configs, self.line.truths, strict=True)):
            step, (rows, lost) = f"w{number}", before[number]
            reported = [_result(config, row) for row in got[step]]
            self._same(config, f"the rows of {step}", truth.out[rows:], reported)
            self.got[number] += reported
            self.late[number] += [_late(row) for row in late[step]]
            gone = self._records(truth.late[lost:])
            self._same(config, f"the late rows of {step}", gone, [_late(row) for row in late[step]])

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
                    entry.batch_time_ms / 1000,
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
        pytest.fail(self.reported(config, key, what, want - have, have - want))

    def reported(
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

    def check_end(self, sent: int, look_at: Collection[int]) -> None:
        """After a drain: no state, all rows counted, and each in a result or late.

        The state's rows are counted for every step; some are looked at, which takes longer.
        """
        kept = self.driver._run_home.latest_checkpoint()
        assert kept is not None
        for number, (config, truth) in enumerate(zip(self.configs, self.line.truths, strict=True)):
            step = f"w{number}"
            assert kept.state[step]["rows"] == 0
            for store in config.stores() if number in look_at else ():
                assert self.driver.state(step, store).all() == [], (config, store)
            counts = self.driver.metrics(step)
            assert counts["records_in"] == sent
            assert counts["records_out"] == len(truth.out)
            if not config.counts:
                assert counts.get("records_out_late", 0) == len(truth.late)
            check_rows(config, truth, sent)


def _by_step(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for row in rows:
        found[row["step"]].append(row)
    return found


def _offset(offsets: Mapping[str, Any], partition: int) -> int:
    return int(offsets.get(str(partition), 0))


def _seconds(time: Any) -> float | None:
    return None if time is None else round(time.timestamp() - START, 3)


def _result(config: Config, row: dict[str, Any]) -> Result:
    assert row["is_partial"] == (row["fired_by"] == "early")
    got = json.loads(row["got"])  # which leaves nulls out
    values = [tuple(v) if isinstance(v := got.get(a), list) else v for a in config.aggregates]
    start, end = _seconds(row["window_start"]), _seconds(row["window_end"])
    return (row["page"], start, end, *values, row["fired_by"], row["pane"])


def _late(row: dict[str, Any]) -> Event:
    return row["id"], row["page"], _seconds(row["at"]), row["value"]


@dataclass(frozen=True)
class Plot:
    """What happens to a job; all of it follows from the seed."""

    seed: int
    configs: int
    keys: Sequence[str]
    rows: int

    def play(self) -> Counter[str]:
        """Live through it; gives how many cases, each a key's stream and a step, were compared."""
        dice = random.Random(self.seed)
        inside = dice.random() < 0.4
        configs = [*random_configs(dice, self.configs), by_clock(dice), by_clock(dice)]
        stream = random_stream(dice, self.keys, self.rows, inside=inside)
        story = Story(
            configs,
            parallelism=dice.choice([1, 1, 2]),
            partitions=1 if inside else dice.choice([1, 2]),
        )
        share = -(-len(stream) // 3)
        with pytest.MonkeyPatch.context() as patch, story.driver as driver:
            patch.setattr(log, "MAX_RECORDS", str(dice.randint(share // 2, share)))
            for at in range(0, len(stream), share):
                last = at + share >= len(stream)
                if last and dice.random() < 0.7:
                    back = dice.choice(list(story.kept))
                    story.restore(back, parallelism=dice.choice([1, 2, 3]))
                if dice.random() < 0.3:
                    driver.advance_processing_time(f"{CLOCK} s")
                story.send(stream[at : at + share])
                if dice.random() < 0.4:
                    driver.crash(at=dice.choice(get_args(CrashPoint))).restore()
                story.run(drain=last)
            story.check_end(len(stream), dice.sample(range(len(configs)), 2))
            if inside:
                for config, truth in zip(configs, story.line.truths, strict=True):
                    if not config.counts and not config.processing:
                        check_final_rows(config, truth, stream)
        keys = len({event[1] for event in stream})
        return Counter(what for config in configs for what in config.tries() for _ in range(keys))
