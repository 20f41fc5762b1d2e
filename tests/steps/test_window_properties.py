"""Random events, windows, disorder, batch cuts and crashes: windows agree with plain Python."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors import log
from headgate.testing import JobDriver
from tests.steps.test_window import VISIT, record, told
from tests.steps.window_truth import Event, Truth

CASES = int(os.environ.get("HEADGATE_WINDOW_CASES", "3"))
DELAY = 30


@dataclass(frozen=True)
class Case:
    """The options of a window step; times are in seconds."""

    kind: str
    size: int
    slide: int
    offset: int
    lateness: int
    every: int
    after: int
    limit: int
    once: bool
    discarding: bool

    def truth(self) -> Truth:
        condition: list[Any] = [(lambda n, total: n > self.limit, self.once)] if self.limit else []
        return Truth(
            size=self.size, delay=DELAY, session=self.kind == "session", slide=self.slide,
            offset=self.offset, lateness=self.lateness, every=self.every, after=self.after,
            conditions=condition, discarding=self.discarding,
        )  # fmt: skip

    def window(self) -> hg.Window:
        if self.kind == "session":
            return hg.session(f"{self.size} s")
        if self.kind == "sliding":
            return hg.sliding(f"{self.size} s", every=f"{self.slide} s")
        return hg.tumbling(f"{self.size} s", offset=f"{self.offset} s")

    def options(self) -> dict[str, Any]:
        early = []
        if self.every:
            early.append(hg.every(f"{self.every} s"))
        if self.after:
            early.append(hg.after_count(self.after))
        if self.limit:
            early.append(hg.when(F.col("n") > self.limit, once=self.once))
        return {
            "early": early,
            "allowed_lateness": f"{self.lateness} s",
            "panes": "discarding" if self.discarding else "accumulating",
        }


@st.composite
def cases(draw: Callable[[Any], Any]) -> Case:
    kind = draw(st.sampled_from(["tumbling", "sliding", "session", "session"]))
    size = draw(st.integers(5, 60) if kind == "session" else st.integers(20, 200))
    return Case(
        kind=kind,
        size=size,
        slide=draw(st.integers(size // 4, size)) if kind == "sliding" else 0,
        offset=draw(st.integers(0, size - 1)) if kind == "tumbling" else 0,
        lateness=draw(st.sampled_from([0, 0, 25, 100, 1000])),
        every=draw(st.sampled_from([0, 0, 20, 90])),
        after=draw(st.sampled_from([0, 0, 2, 5])),
        limit=draw(st.sampled_from([0, 0, 3])),
        once=draw(st.booleans()),
        discarding=draw(st.booleans()),
    )


@st.composite
def events(draw: Callable[[Any], Any]) -> list[Event]:
    """A stream that goes forward by steps and jumps, with rows that are late or have no time."""
    found, now = [], 0
    for number in range(draw(st.integers(1, 80))):
        now += draw(st.sampled_from([0, 1, 5, 20, 20, 300]))
        behind = draw(st.sampled_from([0, 0, 0, 10, 29, 60, 400]))
        time = None if draw(st.integers(0, 30)) == 0 else max(0, now - behind)
        found.append((number, draw(st.sampled_from("aaabcd")), time, draw(st.integers(0, 99))))
    return found


def job_of(windows: list[Case]) -> hg.JobDef:
    @hg.job("random")
    def define(job: hg.Job) -> None:
        visits = job.source(
            "visits",
            hg.topic("log:visits", schema=VISIT),
            event_time=hg.event_time("at", out_of_orderness=f"{DELAY} s"),
        )
        for number, case in enumerate(windows):
            made = visits.key_by("page").window(
                f"w{number}",
                case.window(),
                F.count("*").alias("n"),
                F.sum("value").alias("total"),
                F.collect_set(F.concat(F.lit("v"), F.col("value") % 5)).alias("names"),
                **case.options(),
            )
            made.sink(f"out{number}", hg.topic("log:out"))
            made.late.sink(f"late{number}", hg.topic("log:late"))

    return define


# a case takes seconds, so one that fails is shown as it is and not made smaller
@settings(
    max_examples=CASES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    windows=st.lists(cases(), min_size=3, max_size=3),
    stream=events(),
    runs=st.integers(1, 3),
    cut=st.integers(1, 30),
    crash=st.sampled_from([None, 0, 1]),
    parallelism=st.integers(1, 3),
)
def test_windows_agree_with_plain_python(
    spark: object,
    windows: list[Case],
    stream: list[Event],
    runs: int,
    cut: int,
    crash: int | None,
    parallelism: int,
) -> None:
    truths = [case.truth() for case in windows]
    share = math.ceil(len(stream) / runs)
    cut = max(cut, share // 4 + 1)
    done = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "MAX_RECORDS", str(cut))
        with JobDriver(job_of(windows), parallelism=parallelism) as t:
            for run in range(runs):
                mine = stream[run * share : (run + 1) * share]
                t.send("visits", *[record(e) for e in mine])
                if crash == run and mine:
                    t.crash(at="after_sink").restore()
                last = run == runs - 1
                t.run(drain=last)
                ran = int(t.checkpoint().rpartition(":")[2]) + 1 - done
                done += ran
                cuts = [mine[at : at + cut] for at in range(0, len(mine), cut)]
                cuts += [[] for _ in range(ran - len(cuts))]
                for number, batch in enumerate(cuts):
                    for truth in truths:
                        truth.batch(batch, ended=last and number == len(cuts) - 1)
                for number, truth in enumerate(truths):
                    assert told(t.rows(f"out{number}")) == truth.out, (run, windows[number])
                    assert Counter(r["id"] for r in t.rows(f"late{number}")) == truth.late
                    truth.told()
            kept = t._run_home.latest_checkpoint()
            assert kept is not None
            for number, truth in enumerate(truths):
                step = f"w{number}"
                assert t.state(step).all() == [] and kept.state[step]["rows"] == 0
                counts = t.metrics(step)
                assert counts["records_in"] == len(stream)
                assert counts["records_out_late"] == truth.lost
