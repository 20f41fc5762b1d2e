"""A home that is older than its log topics and files is refused before anything is read."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import ExitCode, HeadgateError, RefusedError, UsageError
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.runtime.options import RunOptions
from headgate.runtime.run import RunOutcome, run
from headgate.snapshots.spark_log import planned_batches, read_entry


class Copying:
    """A job that copies a log topic to another one and to a folder of files."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.home = spark, folder, folder / "home"
        self.source, self.sent = TopicFiles(folder / "in"), 0
        self.source.create(1)

    def send(self, count: int) -> None:
        numbers = range(self.sent, self.sent + count)
        self.source.append([Record(json.dumps({"n": n})) for n in numbers])
        self.sent += count

    def job(self, *, more: bool = False, files: bool = True) -> hg.JobDef:
        @hg.job("copying")
        def copying(job: hg.Job) -> None:
            rows = job.source("in", hg.topic(f"log:{self.folder / 'in'}", schema="n BIGINT"))
            rows = rows.where("n >= 0") if more else rows
            rows.sink("log", hg.topic(f"log:{self.folder / 'out'}"))
            if files:
                rows.sink("files", hg.FilesSink(str(self.folder / "files"), format="json"))

        return copying

    def go(self, job: hg.JobDef | None = None, **options: Any) -> RunOutcome:
        outcome = run(
            job or self.job(), home=str(self.home), bounded=True, spark=self.spark, parallelism=1,
            **options,
        )  # fmt: skip
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def crash(self, point: str) -> None:
        jvm.arm_crash(self.spark, "r1", point)
        with pytest.raises(HeadgateError, match="a test requested"):
            self.go()

    def batches(self, *counts: int) -> None:
        for count in counts:
            self.send(count)
            self.go()

    def keep(self) -> None:
        shutil.copytree(self.home, self.folder / "backup", symlinks=True)

    def restore(self) -> None:
        shutil.rmtree(self.home)
        shutil.copytree(self.folder / "backup", self.home, symlinks=True)

    def written(self) -> dict[str, Counter[int]]:
        """How often each number is in each output."""
        log, files = Counter[int](), Counter[int]()
        out = TopicFiles(self.folder / "out")
        for partition in range(out.partitions()):
            log.update(json.loads(r.value or "")["n"] for r in out.read(partition))
        for file in (self.folder / "files").glob("batch=*/part-*.json"):
            files.update(json.loads(line)["n"] for line in file.read_text().splitlines())
        return {"log": log, "files": files}

    def assert_exact(self, *more: int) -> None:
        truth = Counter([*range(self.sent), *more])
        assert self.written() == {"log": truth, "files": truth}


@pytest.mark.parametrize("start", [{"fresh": True}, {"restore": "ck:1"}])
def test_should_accept_a_position_only_for_a_run_that_goes_on(start: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="resumes the job's run"):
        RunOptions(accept_sink_position=True, **start)


@pytest.fixture
def copying(spark: SparkSession, tmp_path: Path) -> Copying:
    return Copying(spark, tmp_path)


def test_should_refuse_a_home_that_is_older_than_its_sinks(copying: Copying) -> None:
    copying.batches(10, 10)
    copying.keep()
    copying.batches(10, 10, 10)
    copying.restore()
    before = copying.written()
    copying.send(30)
    with pytest.raises(RefusedError) as refused:
        copying.go()
    assert refused.value.exit_code == ExitCode.REFUSED
    said = str(refused.value)
    assert "batch 4 of run r1" in said and "ck:1" in said and "files, log" in said
    for remedy in ("--from", "--fresh", "--accept-sink-position"):
        assert remedy in said
    assert copying.written() == before, "nothing was read or written"
    assert planned_batches(Home(copying.home).job("copying").run("r1"))[-1] == 1


def test_should_go_on_behind_what_the_sinks_have_when_told_to(copying: Copying) -> None:
    copying.batches(10, 10)
    copying.keep()
    copying.batches(10, 10)
    copying.restore()
    copying.send(5)  # nobody has written these
    said: list[str] = []
    copying.go(accept_sink_position=True, display=Saying(said))
    told = next(line for line in said if "count as out" in line)
    assert "batches 2 to 3 of run r1 count as out" in told and "in 0: 20 to 40" in told
    copying.assert_exact()
    copying.batches(5)
    copying.assert_exact()


def test_should_replay_the_batch_that_a_copy_was_in_the_middle_of(copying: Copying) -> None:
    copying.batches(10)
    for point in ("mid_sink", "after_sink"):
        copying.send(10)
        copying.crash(point)
        shutil.rmtree(copying.folder / "backup", ignore_errors=True)
        copying.keep()
        copying.restore()
        copying.go()
        copying.assert_exact()


def test_should_take_markers_of_the_version_before_as_it_did(copying: Copying) -> None:
    copying.batches(10)
    copying.send(10)
    copying.crash("after_sink")
    for file in [
        *(copying.folder / "out" / "_writers").glob("*.json"),
        *(copying.folder / "files").glob("batch=*/_manifest.json"),
    ]:
        found = json.loads(file.read_text())
        kept = ("version", "batch", "segments", "writer", "run", "files")
        assert found["fingerprint"] and found["owner"], "there is something to take away"
        file.write_text(json.dumps({name: found[name] for name in kept if name in found}))
    for owners in copying.folder.glob("*/_owners"):
        shutil.rmtree(owners)
    (copying.home / "jobs" / "copying" / "id.json").unlink()
    copying.go()
    copying.assert_exact()
    copying.batches(10)
    copying.assert_exact()


def test_should_fail_a_batch_whose_number_a_running_copy_has_taken(copying: Copying) -> None:
    """The kernel looks at each batch: a copy of the home may run while this one does."""
    copying.batches(10)
    handle = hg.start(copying.job(), spark=copying.spark, home=str(copying.home))
    (file,) = copying.folder.glob("out/_writers/*.json")
    copying.send(10)
    _until(lambda: json.loads(file.read_text())["batch"] == 1)
    copying_one = {**json.loads(file.read_text()), "batch": 2, "fingerprint": "0" * 16}
    file.write_text(json.dumps(copying_one))
    copying.send(10)
    with pytest.raises(HeadgateError, match="already has this batch number") as failed:
        handle.wait(timeout="60 seconds")
    assert "it has batch 2, and this is batch 2" in str(failed.value)
    events = Home(copying.home).job("copying").run("r1").events()
    reasons = [e.details["reason"] for e in events if e.kind == "failed"]
    assert set(reasons) == {"SINK_AHEAD"}
    assert set(copying.written()["log"]) == set(range(20))


def _until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_should_refuse_a_batch_whose_number_another_copy_has_used(copying: Copying) -> None:
    copying.batches(10)
    copying.keep()
    run_home = Home(copying.home).job("copying").run("r1")
    copying.batches(10)  # batch 1 of one copy
    copying.restore()
    copying.send(10)
    outputs = [*copying.folder.glob("out/_writers/*.json"),
               *copying.folder.glob("files/batch=*-1")]  # fmt: skip
    hidden = copying.folder / "hidden"
    hidden.mkdir()
    for number, path in enumerate(outputs):
        path.rename(hidden / str(number))  # as if the other copy had not written yet
    jvm.arm_crash(copying.spark, "r1", "before_sink")
    with pytest.raises(HeadgateError, match="a test requested"):
        copying.go()  # plans batch 1 of the other copy, with other offsets
    for number, path in enumerate(outputs):
        (hidden / str(number)).rename(path)
    before = copying.written()
    with pytest.raises(RefusedError, match="whose input differs"):
        copying.go()
    entry = read_entry(run_home, 1)
    assert entry is not None and copying.written() == before


def test_should_refuse_a_changed_graph_on_a_home_that_is_older(copying: Copying) -> None:
    copying.batches(10)
    copying.keep()
    copying.batches(10)
    copying.restore()
    with pytest.raises(RefusedError, match="older than its sinks"):
        copying.go(copying.job(more=True))
    copying.go(copying.job(more=True), allow_duplicates=True)
    copying.assert_exact(*range(10, 20))


def test_should_refuse_a_second_home_until_it_takes_over(copying: Copying) -> None:
    copying.batches(10)
    first, second = copying.home, copying.folder / "second"
    copying.home = second
    with pytest.raises(RefusedError, match="--take-over") as refused:
        copying.go()
    assert refused.value.exit_code == ExitCode.REFUSED and str(first) in str(refused.value)
    copying.assert_exact()
    said: list[str] = []
    copying.go(take_over=True, display=Saying(said))
    assert any("taken over from" in line and str(first) in line for line in said)
    copying.assert_exact(*range(10))  # a home from nothing begins at the beginning
    copying.home = first
    copying.send(10)
    with pytest.raises(RefusedError, match="--take-over"):
        copying.go()
    copying.go(copying.job(files=False), name="another")  # outputs are owned by a job's name
    copying.home = second
    copying.go()
    assert set(copying.written()["log"]) == set(range(20))


def test_should_not_write_into_the_folder_of_another_job(copying: Copying) -> None:
    copying.batches(10)
    owner = "the sink 'files' of the job 'copying'"
    with pytest.raises(HeadgateError, match=f"has files from another sink: {owner}") as failed:
        copying.go(name="another")
    assert failed.value.step == "files" and "a folder of its own" in str(failed.value.remedy)
    copying.assert_exact()


def test_should_start_afresh_in_the_home_that_owns_the_outputs(copying: Copying) -> None:
    copying.batches(10)
    copying.go(fresh=True)
    copying.assert_exact(*range(10))


class Saying:
    """Keeps what is said."""

    def __init__(self, lines: list[str]) -> None:
        self.say = lines.append
        self.checkpoint = lambda record: None
        self.tick = self.close = lambda: None
