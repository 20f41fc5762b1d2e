"""The latency bench: what it counts, what voids a run, and how it reads Spark's event log."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from typing import Any

import pytest

from bench.batch_profile import profile
from bench.latency_orders import ITEMS, USERS, Stretch, order_line, output_of, users_of
from bench.latency_tables import where_time_goes
from bench.latency_tally import Tally, percentile, spread_of
from bench.thread_cpu import kind_of, parse_stat, sample, used

# ------------------------------------------------------------- times


def test_percentiles_are_nearest_ranks() -> None:
    values = [float(v) for v in range(1, 1001)]
    random.Random(7).shuffle(values)
    found = spread_of(values)
    assert found is not None
    assert (found.orders, found.p50, found.p90, found.p99, found.max) == (1000, 500, 900, 990, 1000)


@pytest.mark.parametrize("percent", [50, 90, 99])
def test_a_percentile_is_the_least_value_that_covers_its_share(percent: int) -> None:
    drawn = random.Random(percent)
    for size in (1, 2, 3, 10, 101):
        ordered = sorted(drawn.random() for _ in range(size))
        found = percentile(ordered, percent)
        covering = [v for v in ordered if sum(o <= v for o in ordered) >= size * percent / 100]
        assert found == covering[0]


def test_no_times_have_no_spread() -> None:
    assert spread_of([]) is None


# ------------------------------------------------------------- what voids a run


def _tally(sent: int = 200) -> Tally:
    return Tally(sent, lambda number: output_of("store", number))


def _see_all(tally: Tally, numbers: range = range(200)) -> None:
    for number in numbers:
        tally.see(number, output_of("store", number), float(number))


def test_a_run_with_every_order_once_counts() -> None:
    tally = _tally()
    _see_all(tally)
    assert tally.complete
    assert not tally.verdict().void
    spread = tally.spread(*Stretch(warm_up=10, seconds=5).orders(rate=10))
    assert spread is not None
    assert (spread.orders, spread.p50, spread.max) == (50, 124, 149)


def test_a_lost_order_voids_a_run() -> None:
    tally = _tally()
    _see_all(tally, range(199))
    assert not tally.complete
    assert tally.verdict().reason() == "1 lost of 200 orders"


def test_a_doubled_order_voids_a_run_and_keeps_its_first_time() -> None:
    tally = _tally()
    _see_all(tally)
    tally.see(7, "enriched", 9000.0)
    assert tally.verdict().reason() == "1 doubled of 200 orders"
    spread = tally.spread(0, 200)
    assert spread is not None and spread.max == 199


def test_one_lost_and_one_doubled_do_not_make_up_for_each_other() -> None:
    tally = _tally()
    _see_all(tally, range(199))
    tally.see(0, "enriched", 1.0)
    assert not tally.complete
    assert tally.verdict().reason() == "1 lost, 1 doubled of 200 orders"


def test_an_order_in_the_wrong_topic_voids_a_run() -> None:
    tally = _tally()
    _see_all(tally, range(199))
    tally.see(199, "missing_items", 1.0)
    assert tally.verdict().reason() == "1 misplaced of 200 orders"


def test_an_order_that_nobody_sent_voids_a_run() -> None:
    tally = _tally()
    _see_all(tally)
    tally.see(200, "enriched", 1.0)
    tally.see(-1, "enriched", 1.0)
    assert tally.verdict().reason() == "2 unknown of 200 orders"


def test_orders_come_out_where_their_user_and_item_say() -> None:
    for number in range(1000):
        order = json.loads(order_line(number, USERS, 5))
        user, item = order["userId"] < USERS, order["itemId"] < ITEMS
        must = "missing_users" if not user else "enriched" if item else "missing_items"
        assert output_of("store", number) == must
        assert (order["invoiceId"], order["createdAt"]) == (number, 5)


def test_a_user_of_a_job_without_tables_orders_once_a_minute() -> None:
    users = users_of("window", rate=10)
    ordered = [json.loads(order_line(n, users, 0))["userId"] for n in range(600)]
    assert len(set(ordered)) == 600


# ------------------------------------------------------------- threads


def test_a_thread_name_may_hold_blanks_and_brackets() -> None:
    fields = ["S", *["0"] * 10, "150", "50", *["0"] * 30]
    name, seconds = parse_stat(f"12 (a (b) c) {' '.join(fields)}\n")
    assert (name, seconds) == ("a (b) c", 200 / os.sysconf("SC_CLK_TCK"))
    names = ("C1 CompilerThre", "GC Thread#1", "Executor task i", "Thread-12")
    assert [kind_of(name) for name in names] == ["JIT", "GC", "tasks", "Thread-"]


def test_what_a_thread_uses_is_counted_for_its_process() -> None:
    before = sample(os.getpid())
    enough, sampled = threading.Event(), threading.Event()

    def spin() -> None:
        while not enough.is_set():
            pass
        # idle while it is sampled, as process and threads are not read at one moment
        sampled.wait(30)

    busy = threading.Thread(target=spin)
    busy.start()
    until = time.monotonic() + 5
    while sample(os.getpid()).tree - before.tree < 0.1 and time.monotonic() < until:
        time.sleep(0.01)
    enough.set()
    time.sleep(0.02)
    found = used(before, sample(os.getpid()))
    sampled.set()
    busy.join()
    assert found.engine >= 0.1
    assert sum(found.by_kind.values()) == pytest.approx(found.engine, abs=0.06)


# ------------------------------------------------------------- where a batch's time goes


def _job(number: int, batch: int | None, at: int, stages: list[int]) -> dict[str, Any]:
    properties = {} if batch is None else {"streaming.sql.batchId": str(batch)}
    return {"Event": "SparkListenerJobStart", "Job ID": number, "Submission Time": at,
            "Stage IDs": stages, "Properties": properties}  # fmt: skip


def _task(
    stage: int, launch: int, finish: int, *, deserialise: int, run: int, **times: float
) -> dict[str, Any]:
    names = {
        "load": "RocksDB: load - time taken to load the store",
        "update": "time to update",
        "commit": "time to commit changes",
        "shuffle": "internal.metrics.shuffle.write.writeTime",
    }
    counted = [{"Name": names[k], "Update": str(v)} for k, v in times.items()]
    counted.append({"Name": "rows found in the cache", "Update": "9"})
    return {
        "Event": "SparkListenerTaskEnd", "Stage ID": stage,
        "Task Info": {"Launch Time": launch, "Finish Time": finish, "Accumulables": counted},
        "Task Metrics": {"Executor Deserialize Time": deserialise, "Executor Run Time": run},
    }  # fmt: skip


def _stage(number: int, submitted: int, completed: int, *steps: str) -> dict[str, Any]:
    counters = [{"Name": f"headgate {step} records_out"} for step in steps]
    return {
        "Event": "SparkListenerStageCompleted",
        "Stage Info": {"Stage ID": number, "Submission Time": submitted,
                       "Completion Time": completed, "Accumulables": counters},
    }  # fmt: skip


def _progress(batch: int, rows: int, **durations: int) -> dict[str, Any]:
    return {
        "Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent",
        "progress": {"batchId": batch, "durationMs": durations,
                     "sources": [{"numInputRows": rows}, {"numInputRows": 0}]},
    }  # fmt: skip


def _batch(number: int, at: int, slower: int = 0) -> list[dict[str, Any]]:
    """A batch of two stages: reading with a shuffle, then a step with state and a sink."""
    first, second = number * 2, number * 2 + 1
    return [
        _job(number, number, at, [second, first]),
        _task(first, at + 3, at + 20, deserialise=4, run=12, shuffle=2e6),
        _task(first, at + 2, at + 12, deserialise=4, run=5),
        _stage(first, at + 1, at + 21, "orders"),
        _task(second, at + 23, at + 62 + slower, deserialise=5, run=33 + slower,
              load=3, update=13 + slower, commit=8),
        _stage(second, at + 22, at + 63 + slower, "lookup", "enriched", "lookup"),
        _progress(number, 200, triggerExecution=110 + slower, latestOffset=7, getBatch=1,
                  queryPlanning=12, walCommit=6, addBatch=75 + slower, commitOffsets=5),
    ]  # fmt: skip


def _log(*batches: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(event) for batch in batches for event in batch]


def test_a_batch_is_cut_into_the_parts_of_its_stages() -> None:
    found = profile(_log(_batch(3, 1000)))
    assert found is not None
    assert (found.batches, found.rows, found.took) == (1, 200, 110)
    assert found.driver == {
        "sources": 8, "planning": 12, "offset log": 6, "commit": 5, "around stages": 12
    }  # fmt: skip
    reading, lookup = found.stages
    assert (reading.steps, reading.took) == ("orders", 21)
    assert reading.parts == {
        "wait": 3, "deserialise": 4, "open state": 0, "rows": 10, "commit state": 0, "write": 2,
        "result": 2,
    }  # fmt: skip
    assert (lookup.steps, lookup.took) == ("lookup enriched", 42)
    assert lookup.parts == {
        "wait": 2, "deserialise": 5, "open state": 3, "rows": 10, "commit state": 8, "write": 12,
        "result": 2,
    }  # fmt: skip


def test_figures_are_medians_over_batches() -> None:
    found = profile(_log(_batch(1, 1000), _batch(2, 2000, slower=500), _batch(3, 3000, slower=4)))
    assert found is not None
    assert (found.batches, found.took) == (3, 114)
    assert found.stages[1].parts["rows"] == 14
    assert "  stage: lookup enriched" in "\n".join(where_time_goes(found))


def test_batches_without_rows_half_batches_and_other_jobs_do_not_count() -> None:
    empty = _batch(5, 5000)
    empty[-1] = _progress(5, 0, triggerExecution=9)
    lines = _log(
        [_progress(0, 200, triggerExecution=900, addBatch=800)],  # its stages were before the log
        [_job(90, None, 10, [90]), _stage(90, 11, 12)],
        _batch(1, 1000),
        empty,
        _batch(6, 6000)[:-1],  # its progress is not written yet
    )
    found = profile([*lines, lines[-1][:20]])
    assert found is not None
    assert (found.batches, found.took) == (1, 110)


def test_a_log_without_batches_has_no_profile() -> None:
    assert profile([]) is None
