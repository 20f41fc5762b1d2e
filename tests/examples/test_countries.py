"""The book's example: hourly counts by country, an alert at ten events, sessions by user."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.app import load_app
from headgate.testing import JobDriver

ROOT = Path(__file__).resolve().parents[2]
COUNTRIES = ROOT / "examples" / "countries" / "countries.py"
Make = Callable[..., JobDriver]


def event(user: str, country: str | None, time: str, page: str = "/") -> dict[str, Any]:
    return {"user_id": user, "country": country, "page": page, "event_time": f"2026-03-01T{time}"}


def clock(time: datetime) -> str:
    return f"{time:%H:%M}"


def test_counts_alerts_and_sessions_come_from_one_job(job_driver: Make) -> None:
    t = job_driver(load_app(str(COUNTRIES)).job, params={"servers": "localhost:9092"})
    nine = [event("ann", "NO", f"09:{minute:02}:00", f"/{minute % 2}") for minute in range(9)]
    t.send("events", *nine, event("bo", "br", "09:10:00"), event("cy", None, "09:10:00")).run()
    assert t.rows("alerts") == t.rows("hourly") == t.rows("sessions") == []

    # the tenth comes after a pause of six minutes, in another session
    t.send("events", event("ann", "no", "09:14:00")).run()
    assert [alert(r) for r in t.rows("alerts")] == [("NO", "09:00", 10, 1, True)]
    t.send("events", event("dee", "NO", "09:15:00"), event("dee", "NO", "09:17:00", "/b")).run()
    assert t.rows("alerts") == [], "once a country and hour"
    assert sorted(session(r) for r in t.rows("sessions")) == [
        ("ann", "09:00", "09:13", 9, ["/0", "/1"]),
        ("bo", "09:10", "09:15", 1, ["/"]),
    ]

    t.send("events", event("bo", "BR", "10:02:00")).run()  # nine o'clock is over
    assert sorted(hour(r) for r in t.rows("hourly")) == [
        ("BR", "09:00", 1, 1, "on_time"),
        ("NO", "09:00", 12, 2, "on_time"),
    ]
    t.send("events", event("bo", "BR", "09:59:30")).run()  # late, but by less than five minutes
    assert [hour(r) for r in t.rows("hourly")] == [("BR", "09:00", 2, 1, "late")]
    t.send("events", event("eve", "NO", "10:30:00")).run()
    t.send("events", event("bo", "BR", "09:20:00")).run()  # too late
    t.run(drain=True)
    assert sorted(hour(r) for r in t.rows("hourly")) == [
        ("BR", "10:00", 1, 1, "on_time"),
        ("NO", "10:00", 1, 1, "on_time"),
    ]
    assert t.rows("alerts") == []
    assert sorted(session(r) for r in t.rows("sessions")) == [
        ("ann", "09:14", "09:19", 1, ["/"]),
        ("bo", "09:59", "10:07", 2, ["/"]),
        ("dee", "09:15", "09:22", 2, ["/", "/b"]),
        ("eve", "10:30", "10:35", 1, ["/"]),
    ]
    assert t.metrics("country_hourly")["records_out_late"] == 1
    assert t.metrics("country_hourly")["records_in"] == 17


def alert(row: dict[str, Any]) -> tuple[Any, ...]:
    start = clock(row["window_start"])
    return row["country"], start, row["events"], row["users"], row["is_partial"]


def hour(row: dict[str, Any]) -> tuple[Any, ...]:
    assert not row["is_partial"]
    start = clock(row["window_start"])
    return row["country"], start, row["events"], row["users"], row["fired_by"]


def session(row: dict[str, Any]) -> tuple[Any, ...]:
    start, end = clock(row["window_start"]), clock(row["window_end"])
    return row["user_id"], start, end, row["events"], row["pages"]


@pytest.mark.long
def test_the_demo_accounts_for_every_event(tmp_path: Path, kafka_servers: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo_countries.py"), "--dir", "demo",
         "--servers", kafka_servers],
        cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    counted, alerts, sessions, last = ran.stdout.splitlines()[-4:]
    assert counted == "6 hourly counts, as counted by hand"
    assert alerts == "4 alerts, as counted by hand"
    assert sessions.endswith("sessions, as counted by hand")
    assert last == (
        "96 events in the hourly counts + 3 without a country + 4 too late = 103; "
        "103 were sent: every event is accounted for"
    )
