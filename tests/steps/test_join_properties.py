"""Random joins and dedupe steps over random streams agree with plain Python.

One job has several steps over two streams of many sparse keys. A case is one key's rows in one
step: keys do not touch each other, but share batches, watermark, crashes, restores and drain.
`HEADGATE_SEEDS` asks for more jobs, with other seeds.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

import headgate as hg
from headgate.connectors.log import connector as log
from headgate.snapshots.spark_log import read_entry
from headgate.testing import CrashPoint, JobDriver
from tests.steps.join_truth import ENDED, NEVER, DedupeTruth, JoinCase, JoinTruth, Result, Row
from tests.steps.seeds import seeds

START = datetime(2026, 1, 1, tzinfo=UTC)
ROW = "id BIGINT, key STRING, value BIGINT, at TIMESTAMP"
SIDES = ("lefts", "rights")
KEYS = 270
ROWS = 2300
DELAY = 20
# how large a key's rows get before some are kept apart: a row, a few, many
BLOCKS, SIZES = "spark.headgate.join.block.bytes", ("1b", "300b", "8k")
Truth = JoinTruth | DedupeTruth


def random_case(dice: random.Random, number: int) -> JoinCase:
    modes = tuple(dice.choice(["drop", "null", "side"]) for _ in range(2))
    least = dice.choice([None, None, -20])
    if number % 2:
        slide = dice.choice([20, 30, 45])
        size = slide * dice.choice([1, 1, 2, 3])
        offset = dice.choice([0, 7, -7])
        return JoinCase(size=size, slide=slide, offset=offset, least=least, unmatched=modes)
    lower = dice.choice([-60, -20, 0, 10])
    upper = lower + dice.choice([0, 15, 60, 90])
    return JoinCase(lower, upper, least=least, unmatched=modes)


def within(case: JoinCase) -> hg.Between | hg.Window:
    if not case.size:
        return hg.between(f"{case.lower} s", f"{case.upper} s")
    offset = f"{case.offset} s"
    if case.size == case.slide:
        return hg.tumbling(f"{case.size} s", offset=offset)
    return hg.sliding(f"{case.size} s", every=f"{case.slide} s", offset=offset)


def job_of(cases: list[JoinCase], times: list[int | None]) -> hg.JobDef:
    @hg.job("random")
    def define(job: hg.Job) -> None:
        left, right = (
            job.source(
                side,
                hg.topic(f"log:{side}", schema=ROW),
                event_time=hg.event_time("at", out_of_orderness=f"{DELAY} s"),
            )
            for side in SIDES
        )
        told: list[hg.Stream] = []

        def tell(step: str, output: str, rows: hg.Stream, left: str, right: str) -> None:
            end = "window_end" if "window_end" in rows.columns else "CAST(NULL AS TIMESTAMP)"
            told.append(
                rows.select(
                    f"'{step}' AS step",
                    f"'{output}' AS output",
                    f"{left} AS l",
                    f"{right} AS r",
                    f"{end} AS window_end",
                )
            )

        none = "CAST(NULL AS BIGINT)"
        for number, case in enumerate(cases):
            step = f"j{number}"
            where = None if case.least is None else f"other.value - value >= {case.least}"
            joined = left.key_by("key").join(
                step,
                right.key_by("key"),
                within=within(case),
                where=where,
                into="other",
                left_unmatched=case.unmatched[0],  # type: ignore[arg-type]
                right_unmatched=case.unmatched[1],  # type: ignore[arg-type]
            )
            tell(step, "out", joined, "id", "other.id")
            tell(step, "late", joined.late, "left.id", "right.id")
            if case.unmatched[0] == "side":
                tell(step, "unmatched_left", joined.unmatched_left, "id", none)
            if case.unmatched[1] == "side":
                tell(step, "unmatched_right", joined.unmatched_right, none, "id")
        for number, time in enumerate(times):
            step = f"d{number}"
            first = left.key_by("key").dedupe(step, within=None if time is None else f"{time} s")
            tell(step, "out", first, "id", none)
            tell(step, "duplicates", first.duplicates, "id", none)
        told[0].union(*told[1:]).sink("told", hg.topic("log:told"))

    return define


def random_rows(dice: random.Random) -> list[Row]:
    """Rows of both sides as they come: time goes on, with disorder and some that are very late."""
    found = []
    for id in range(ROWS):
        now = id * 600 // ROWS
        late = dice.choice([0, 5, DELAY]) if dice.random() < 0.9 else 150
        time = None if dice.random() < 0.01 else now - dice.randint(0, late)
        key = None if dice.random() < 0.01 else f"k{dice.randrange(KEYS)}"
        found.append(Row(dice.randrange(2), id, key, time, dice.randrange(50)))
    return found


class Story:
    """A job with its truths along the line of its checkpoints."""

    def __init__(self, dice: random.Random) -> None:
        self.cases = [random_case(dice, number) for number in range(4)]
        self.sizes = random.Random(str(self.cases))
        self.times: list[int | None] = [None, dice.choice([5, 40, 200])]
        self.truths: list[Truth] = [
            *(JoinTruth(case) for case in self.cases),
            *(DedupeTruth(time) for time in self.times),
        ]
        self.steps = [f"j{n}" for n in range(4)] + [f"d{n}" for n in range(2)]
        self.sent: tuple[list[Row], list[Row]] = ([], [])
        self.done = -1
        self.kept: dict[str, tuple[int, list[Truth]]] = {}
        self.got: dict[str, list[Result]] = {}
        self.driver = JobDriver(job_of(self.cases, self.times), parallelism=dice.choice([1, 2]))

    def send(self, rows: list[Row]) -> None:
        for side, name in enumerate(SIDES):
            mine = [row for row in rows if row.side == side]
            self.sent[side].extend(mine)
            self.driver.send(name, *[_record(row) for row in mine])

    def restore(self, checkpoint: str, parallelism: int) -> None:
        self.driver.restore(checkpoint, parallelism=parallelism)
        done, truths = self.kept[checkpoint]
        self.done, self.truths = done, copy.deepcopy(truths)

    def run(self, *, drain: bool = False) -> None:
        conf = self.driver.spark.conf
        conf.set(BLOCKS, self.sizes.choice(SIZES))
        try:
            self.driver.run(drain=drain)
        finally:
            conf.unset(BLOCKS)
        before = [len(truth.out) for truth in self.truths]
        home = self.driver._run_home
        for record in home.checkpoints():
            if record.id > self.done:
                self._live(record, read_entry(home, record.id))
                self.done = record.id
                self.kept[f"{home.id}/ck:{record.id}"] = (self.done, copy.deepcopy(self.truths))
        found: dict[str, list[Result]] = {step: [] for step in self.steps}
        for row in self.driver.rows("told"):
            end = row["window_end"]
            seconds = None if end is None else round((end - START).total_seconds())
            found[row["step"]].append((row["output"], row["l"], row["r"], seconds))
        for step, truth, seen in zip(self.steps, self.truths, before, strict=True):
            wanted, got = Counter(truth.out[seen:]), Counter(found[step])
            what = truth.case if isinstance(truth, JoinTruth) else truth.within
            assert wanted == got, f"{step} ({what}): missing {wanted - got}, not due {got - wanted}"

    def _live(self, record: Any, entry: Any) -> None:
        ended = any('"drained":true' in line for line in entry.lines)
        mark = NEVER
        if entry.watermark_ms:
            mark = entry.watermark_ms / 1000 - START.timestamp()
        came = []
        for side, name in enumerate(SIDES):
            offsets = record.sources[name]
            start, end = (int(o.get("0", 0)) for o in (offsets.start, offsets.end))
            came.append(self.sent[side][start:end])
        for truth in self.truths:
            if isinstance(truth, JoinTruth):
                truth.batch(came[0] + came[1], ENDED if ended else mark)
            else:
                truth.batch(came[0], mark)


def _record(row: Row) -> dict[str, Any]:
    at = None if row.time is None else (START + timedelta(seconds=row.time)).isoformat()
    return {"id": row.id, "key": row.key, "value": row.value, "at": at}


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds())
def test_joins_and_dedupe_agree_with_plain_python(seed: int, spark: object) -> None:
    dice = random.Random(seed)
    story = Story(dice)
    rows = random_rows(dice)
    share = -(-len(rows) // 4)
    with pytest.MonkeyPatch.context() as patch, story.driver as driver:
        patch.setattr(log, "MAX_RECORDS", str(dice.randint(share // 3, share)))
        for at in range(0, len(rows), share):
            last = at + share >= len(rows)
            if last:
                story.restore(dice.choice(list(story.kept)), dice.choice([1, 2, 3]))
            story.send(rows[at : at + share])
            if dice.random() < 0.5:
                driver.crash(at=dice.choice(get_args(CrashPoint))).restore()
            story.run(drain=last)
        kept = driver._run_home.latest_checkpoint()
        assert kept is not None
        for number in range(len(story.cases)):
            assert kept.state[f"j{number}"]["rows"] == 0
            assert driver.state(f"j{number}", "due").all() == []
    mine = [{row.key for row in rows if row.side == side} for side in (0, 1)]
    cases: Counter[str] = Counter()
    for truth in story.truths:
        if isinstance(truth, DedupeTruth):
            cases["dedupe"] += len(mine[0])
        else:
            cases["windows" if truth.case.size else "time"] += len(mine[0] & mine[1])
    assert len(cases) == 3 and min(cases.values()) >= 500, cases
    for truth in story.truths:  # every output of every step was there to be compared
        outputs = {output for output, *_ in truth.out}
        assert len(outputs) >= 2, outputs
