"""Records of checkpoints from sample progress, and after a driver that was killed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.home.layout import Home, RunHome
from headgate.runtime.records import Recorder, forked_record

SOURCES = ["orders", "users"]


@pytest.fixture
def run(tmp_path: Path) -> RunHome:
    return Home(tmp_path).job("store").run("r1")


def journal(run: RunHome, batch: int, **counters: dict[str, int]) -> None:
    text = json.dumps({"batch": batch, "counters": counters, "event_time": event_time(batch)})
    run.files.write_text(f"{run.path}/journal/{batch:010d}.json", text)


NOON = 1767268800000


def event_time(batch: int) -> dict[str, Any]:
    """What the kernel says of the watermarks after a batch."""
    orders = {"watermark": NOON + 60_000 * batch, "rows_at": NOON, "since": NOON}
    return {
        "at": NOON + batch, "watermark": NOON - 60_000, "next": NOON, "ended": False,
        "sources": {
            "orders": {**orders, "idle_after": None, "idle_since": None},
            "clicks": {"watermark": None, "rows_at": None, "since": NOON - 90_000,
                       "idle_after": 60_000, "idle_since": NOON - 30_000},
        },
    }  # fmt: skip


def counts(n: int) -> dict[str, dict[str, int]]:
    return {
        "orders": {"records_out": n, "records_out_malformed": 1},
        "users_lookup": {"records_in": n, "records_out": n - 1, "records_out_missing": 1,
                         "state_inserted": 3, "state_removed": 1},
    }  # fmt: skip


def spark(run: RunHome, batch: int, *, commit: bool = True) -> None:
    """What Spark leaves of a batch."""
    meta = {"batchWatermarkMs": 1767268800000, "batchTimestampMs": 1767268801000 + batch}
    end = batch * 10 + 10
    lines = ["v1", json.dumps(meta), json.dumps({"0": end}), "-"]
    run.files.write_text(f"{run.spark_path}/offsets/{batch}", "\n".join(lines))
    if commit:
        run.files.write_text(f"{run.spark_path}/commits/{batch}", "v2\n{}")


def progress(batch: int, *, ran: bool = True) -> dict[str, Any]:
    durations = {"latestOffset": 5, "triggerExecution": 130}
    if ran:
        durations |= {
            "getBatch": 2, "queryPlanning": 20, "addBatch": 80, "walCommit": 7, "commitOffsets": 9,
        }  # fmt: skip
    return {
        "batchId": batch,
        "timestamp": "2026-01-01T12:00:00.500Z",
        "batchDuration": 130,
        "durationMs": durations,
        "stateOperators": [
            {"operatorName": "headgate:users_lookup", "numRowsTotal": 0, "memoryUsedBytes": 4096,
             "customMetrics": {"rocksdbSstFileSize": 2048}},
            {"operatorName": "dedupe", "memoryUsedBytes": 9},
        ],
        "sources": [
            {"startOffset": {"0": batch * 10}, "endOffset": {"0": batch * 10 + 10},
             "latestOffset": {"0": 100}},
            {"startOffset": None, "endOffset": '{"0": 4}', "latestOffset": None},
        ],
    }  # fmt: skip


def test_a_record_tells_times_counts_state_and_offsets(run: RunHome) -> None:
    journal(run, 0, **counts(10))
    [record] = Recorder(run, SOURCES).observe([progress(0)])
    assert run.latest_checkpoint() == record
    assert (record.id, record.run, record.status, record.type) == (0, "r1", "COMPLETED", "periodic")
    assert record.triggered_at == datetime(2026, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
    assert record.completed_at == datetime(2026, 1, 1, 12, 0, 0, 630_000, tzinfo=UTC)
    assert record.duration_ms == 130
    assert record.phases == {"sources": 7, "planning": 20, "execution": 80, "commit": 16}
    assert record.rows == counts(10)
    assert record.totals == counts(10)
    assert record.state == {"users_lookup": {"rows": 2, "bytes": 2048}}
    assert record.sources["orders"].end == {"0": 10}
    assert record.sources["orders"].behind() == 90
    assert record.sources["users"].start == {}
    assert record.sources["users"].end == {"0": 4}
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert record.watermark == noon - timedelta(minutes=1)
    assert record.event_time is not None and record.watermark_after == noon
    assert {name: s.watermark for name, s in record.event_time.sources.items()} == {
        "orders": noon, "clicks": None
    }  # fmt: skip
    assert record.event_time.sources["clicks"].idle_since == noon - timedelta(seconds=30)
    # the next start is told what the kernel has to know
    told = event_time(0)
    assert record.event_time.to_kernel()["at"] == told["at"]
    for name, time in record.event_time.to_kernel()["sources"].items():
        assert time == {part: told["sources"][name][part] for part in time}


def test_totals_add_up_over_batches_and_restarts(run: RunHome) -> None:
    for batch in range(3):
        journal(run, batch, **counts(10))
        Recorder(run, SOURCES).observe([progress(batch)])
    last = run.latest_checkpoint()
    assert last is not None
    assert last.totals["users_lookup"] == {
        "records_in": 30, "records_out": 27, "records_out_missing": 3,
        "state_inserted": 9, "state_removed": 3,
    }  # fmt: skip
    assert last.state["users_lookup"]["rows"] == 6


def test_a_batch_is_recorded_once_however_often_it_is_seen(run: RunHome) -> None:
    journal(run, 0, **counts(10))
    recorder = Recorder(run, SOURCES)
    assert len(recorder.observe([progress(0), progress(0)])) == 1
    assert recorder.observe([progress(0)]) == []


def test_a_trigger_without_a_batch_is_not_a_checkpoint(run: RunHome) -> None:
    recorder = Recorder(run, SOURCES)
    assert recorder.observe([progress(0, ran=False)]) == []
    journal(run, 0, **counts(1))
    assert [record.id for record in recorder.observe([progress(0)])] == [0]


def test_a_killed_driver_loses_no_counts(run: RunHome) -> None:
    for batch in range(3):
        journal(run, batch, **counts(10))
        spark(run, batch)
    spark(run, 3, commit=False)  # planned only: it is run again
    Recorder(run, SOURCES).observe([progress(0)])
    recovered = Recorder(run, SOURCES).recover()
    assert [record.id for record in recovered] == [1, 2]
    assert {record.type for record in recovered} == {"recovered"}
    last = recovered[-1]
    assert last.totals["orders"] == {"records_out": 30, "records_out_malformed": 3}
    assert last.state["users_lookup"] == {"rows": 6, "bytes": 2048}, "the last known size stays"
    assert last.sources["orders"].start == {"0": 20}
    assert last.sources["orders"].end == {"0": 30}
    assert last.sources["users"].end == {}
    assert last.watermark == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert last.event_time is not None
    assert last.event_time.sources["orders"].watermark == datetime(2026, 1, 1, 12, 2, tzinfo=UTC)
    assert last.triggered_at == datetime(2026, 1, 1, 12, 0, 1, 2000, tzinfo=UTC)
    assert last.completed_at is not None
    assert Recorder(run, SOURCES).recover() == []


def test_progress_that_was_missed_is_made_good_from_the_journal(run: RunHome) -> None:
    for batch in range(3):
        journal(run, batch, **counts(10))
        spark(run, batch)
    records = Recorder(run, SOURCES).observe([progress(2)])
    assert [(record.id, record.type) for record in records] == [
        (0, "recovered"), (1, "recovered"), (2, "periodic"),
    ]  # fmt: skip
    assert records[-1].totals["orders"]["records_out"] == 30


def test_the_journal_is_kept_only_until_it_is_in_a_record(run: RunHome) -> None:
    for batch in range(3):
        journal(run, batch, **counts(10))
        spark(run, batch)
    Recorder(run, SOURCES).recover()
    assert run.files.list(f"{run.path}/journal") == ["0000000002.json"]


def test_a_fork_begins_with_the_totals_of_the_steps_it_has(run: RunHome) -> None:
    journal(run, 0, **counts(10))
    [parent] = Recorder(run, SOURCES).observe([progress(0)])
    record = forked_record(parent, run="r2", steps=["orders", "other"])
    assert (record.id, record.run, record.type) == (0, "r2", "forked")
    assert record.rows == {}
    assert record.totals == {"orders": counts(10)["orders"]}
    assert record.state == {}
    assert set(record.sources) == {"orders"}
    assert record.event_time is not None and set(record.event_time.sources) == {"orders"}


def test_kafka_offsets_lose_their_topic(run: RunHome) -> None:
    shown = progress(0)
    shown["sources"][0]["endOffset"] = {"orders": {"0": 5, "1": 6}}
    [record] = Recorder(run, SOURCES).observe([shown])
    assert record.sources["orders"].end == {"0": 5, "1": 6}
