"""The tutorials on visits: their records give what they promise, from driver to broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.app import load_app
from headgate.home.layout import Home
from headgate.testing import JobDriver
from tests.kafka.client import Kafka

ROOT = Path(__file__).resolve().parents[2]
VISITS = ROOT / "examples" / "visits"
Make = Callable[..., JobDriver]


def sent(name: str) -> list[str]:
    """The records of one step of the tutorial."""
    return (VISITS / "records" / f"{name}.jsonl").read_text().splitlines()


def reported(rows: list[dict[str, Any]]) -> list[tuple[int, str, int, str, int]]:
    return sorted(
        (r["visit_id"], f"{r['window_start']:%H:%M:%S}", r["visits"], r["fired_by"], r["pane"])
        for r in rows
    )


def visit(time: str) -> dict[str, Any]:
    return {"visit_id": 1, "event_id": "more", "page": "p", "event_time": f"2025-09-04T{time}"}


def test_the_reprocessors_visits_give_its_rows_and_the_last_one_again_after_a_restore(
    job_driver: Make,
) -> None:
    t = job_driver(load_app(str(VISITS / "visits.py")).job)
    t.send("visits", *sent("first")).run()
    assert t.rows("visits_counter") == []
    t.send("visits", *sent("second")).run()
    assert reported(t.rows("visits_counter")) == [(1, "10:00:00", 10, "early", 0)]
    second = t.checkpoint()
    t.send("visits", *sent("third")).run()
    assert reported(t.rows("visits_counter")) == [(1, "10:00:00", 12, "early", 1)]
    t.run()
    assert t.rows("visits_counter") == [], "a resume says nothing again"
    t.restore(second).run()
    assert reported(t.rows("visits_counter")) == [(1, "10:00:00", 12, "early", 1)]

    t.send("visits", visit("10:36:00")).run()  # the watermark is at 10:31
    assert reported(t.rows("visits_counter")) == [(1, "10:00:00", 12, "on_time", 2)]
    t.send("visits", visit("10:14:00"), visit("10:16:00")).run()
    assert reported(t.rows("visits_counter")) == [(1, "10:15:00", 1, "on_time", 0)]
    t.send("visits", visit("10:29:00")).run()  # late, but not later than ten minutes
    assert reported(t.rows("visits_counter")) == [(1, "10:15:00", 2, "late", 1)]
    (late,) = t.rows("too_late")
    assert late | {"event_time": f"{late['event_time']:%FT%T}"} == visit("10:14:00")
    t.run(drain=True)
    assert reported(t.rows("visits_counter")) == [(1, "10:30:00", 1, "on_time", 0)]
    assert t.rows("too_late") == []
    assert t.metrics("visits_15m") == {"records_in": 16, "records_out": 6, "records_out_late": 1}


def test_one_last_row_a_window_across_a_crash_and_its_count_in_a_savepoint(
    job_driver: Make,
) -> None:
    t = job_driver(load_app(str(VISITS / "visits.py")).job)
    t.send("visits", {"visit_id": 1, "event_time": "2026-01-01T12:01:00"}).run()
    savepoint = t.savepoint()
    t.send("visits", {"visit_id": 1, "event_time": "2026-01-01T12:02:00"})
    t.crash(at="after_sink").restore().advance_watermark("visits", "2026-01-01T12:15:00").run()
    last = [(r["visits"], r["is_partial"]) for r in t.rows("visits_counter") if not r["is_partial"]]
    assert last == [(2, False)]
    t.restore(savepoint, parallelism=3)
    kept = t.state("visits_15m").get(visit_id=1)
    assert kept["visits"] == 1 and f"{kept['window_end']:%H:%M}" == "12:15"


def test_windows_of_45_seconds_are_told_after_every_fourth_visit(job_driver: Make) -> None:
    t = job_driver(load_app(str(VISITS / "windows.py")).job)
    t.send("visits", *generated(0, 60)).run()
    assert reported(t.rows("visit_windows")) == [
        (1, "10:00:00", 9, "early", 0),
        (1, "10:00:00", 9, "on_time", 1),
        (2, "10:00:00", 5, "early", 0),
        (2, "10:00:00", 5, "on_time", 1),
        (3, "10:00:00", 2, "on_time", 0),
    ]
    t.send("visits", *generated(60, 75)).run()  # 3 and 3 of visit 1; 1 and 2 of visit 2
    assert reported(t.rows("visit_windows")) == [(1, "10:00:45", 6, "early", 0)]
    t.send("visits", *generated(75, 89)).run()
    assert reported(t.rows("visit_windows")) == [(2, "10:00:45", 4, "early", 0)]
    t.run(drain=True)
    assert reported(t.rows("visit_windows")) == [
        (1, "10:00:45", 9, "on_time", 1),
        (2, "10:00:45", 4, "on_time", 1),
        (3, "10:00:45", 1, "on_time", 0),
    ]


def generated(first: int, last: int) -> list[str]:
    """What the generator prints."""
    program = [sys.executable, str(VISITS / "generate_visits.py")]
    ran = subprocess.run(
        [*program, "--first", str(first), "--last", str(last)],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return ran.stdout.splitlines()


@pytest.mark.long
def test_both_tutorials_on_a_real_broker_keep_their_promises(
    tmp_path: Path, kafka_servers: str
) -> None:
    demo = tmp_path / "demo"
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo_visits.py"), "--dir", str(demo),
         "--servers", kafka_servers],
        cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr

    # The whole topic, as a reader of committed records sees it: the tutorial's rows of 10 and 12
    # visits, after the restore that of 12 again, and at the end the last one.
    kafka = Kafka(kafka_servers)
    window = {
        "visit_id": 1,
        "window_start": "2025-09-04T10:00:00.000Z",
        "window_end": "2025-09-04T10:15:00.000Z",
    }
    assert [(r.key, json.loads(r.value or "")) for r in kafka.read("visits_counter")] == [
        ("1", window | {"visits": 10, "is_partial": True}),
        ("1", window | {"visits": 12, "is_partial": True}),
        ("1", window | {"visits": 12, "is_partial": True}),
        ("1", window | {"visits": 12, "is_partial": False}),
    ]
    assert kafka.read("visits_late") == []
    assert kafka.values("visits") == [*sent("first"), *sent("second"), *sent("third")]
    runs = [run.read() for run in Home(str(demo / "home")).job("visits_counter").runs()]
    assert [run.parent and run.parent.run for run in runs] == [None, "r1"]

    # In 200 seconds: every window's last row, once, whatever the stop did.
    rows = [json.loads(value or "") for value in kafka.values("visit_windows")]
    final = Counter(
        (r["visit_id"], r["window_start"][14:19], r["visits"]) for r in rows if not r["is_partial"]
    )
    assert final == Counter(
        [(1, "00:00", 9), (1, "00:45", 9), (1, "01:30", 9), (1, "02:15", 9), (1, "03:00", 4),
         (2, "00:00", 5), (2, "00:45", 4), (2, "01:30", 5), (2, "02:15", 4), (2, "03:00", 2),
         (3, "00:00", 2), (3, "00:45", 1), (3, "01:30", 2), (3, "02:15", 1), (3, "03:00", 1)]
    )  # fmt: skip
    assert any(row["is_partial"] and row["visits"] >= 4 for row in rows)
