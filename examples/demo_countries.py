"""`make demo-countries`: the book's hourly counts, alerts and sessions from one job."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from demo_kit import generate, local_broker, must, rows, say, start, totals, typed, wait_until

from headgate.brokers import KafkaBroker

HERE = Path(__file__).resolve().parent / "countries"
JOB = "country_activity"
GAP = timedelta(minutes=5)
ALERT = 10
Truth = Counter[tuple[str, str, int]]


def main() -> int:
    """Exit code 1 if a count, an alert or a session is not as counted by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--dir", type=Path, default=Path("build/demo-countries"), help="where to work"
    )
    parser.add_argument("--servers", help="a Kafka broker that runs already: host:port")
    options = parser.parse_args()
    with local_broker(KafkaBroker, options.dir, running=options.servers) as servers:
        return _play(servers, options.dir / "home")


def _play(servers: str, home: Path) -> int:
    def address(topic: str) -> str:
        return f"kafka://{servers}/{topic}"

    def counted(step: str, what: str = "records_out") -> int:
        return totals(home, JOB).get(step, {}).get(what, 0)

    def send(part: str) -> int:
        generate(address("events"), HERE / "generate_events.py", part)
        return len(rows(address("events")))

    for topic in ("events", "country-hourly", "alerts", "sessions"):
        must("topic", "create", address(topic))
    say("the first half of the events, and the job")
    sent = send("first")
    command = ["run", typed(HERE / "countries.py"), "--home", str(home), "--set",
               f"servers={servers}"]  # fmt: skip
    running = start(*command)
    wait_until(running, lambda: counted("events") == sent)
    say(f"alerts of countries that had {ALERT} events, long before their hour is over")
    must("topic", "read", address("alerts"))
    say("the second half: the first hour ends; events of it that come now are too late")
    on_time = send("second")
    wait_until(running, lambda: counted("hourly") > 0)
    sent = send("late")
    wait_until(running, lambda: counted("events") == sent)
    must("stop", JOB, "--no-savepoint", "--home", str(home))
    running.wait()
    say("the rest of what the topic holds is read, and all windows are closed")
    must(*command, "--bounded", "--drain")
    must("topic", "read", address("country-hourly"))
    must("topic", "read", address("sessions"), "--limit", "3")
    must("show", JOB, "--steps", "--home", str(home))

    events = [e for e in rows(address("events"))[:on_time] if e["country"] is not None]
    right = _compare("hourly counts", _hourly(events), _reported(rows(address("country-hourly"))))
    alerts = Counter((country, hour, 1) for country, hour, n in _hourly(events) if n >= ALERT)
    reported = Counter((row["country"], _hour(row), 1) for row in rows(address("alerts")))
    right &= _compare("alerts", alerts, reported)
    sessions = Counter(
        (row["user_id"], row["window_start"][11:19], row["events"])
        for row in rows(address("sessions"))
    )
    right &= _compare("sessions", _sessions(events), sessions)
    late = counted("country_hourly", "records_out_late")
    nowhere = on_time - len(events)
    total = sum(n for *_, n in _reported(rows(address("country-hourly"))).elements())
    right &= total + nowhere + late == sent
    print(
        f"{total} events in the hourly counts + {nowhere} without a country + {late} too late = "
        f"{total + nowhere + late}; {sent} were sent: "
        f"{'every event is accounted for' if right else 'NOT RIGHT'}",
        flush=True,
    )
    return 0 if right else 1


def _compare(what: str, wanted: Truth, found: Truth) -> bool:
    """Say whether the topic has exactly what was counted by hand."""
    if wanted == found:
        print(f"{found.total()} {what}, as counted by hand", flush=True)
        return True
    print(f"{what}: not there {wanted - found}, too many {found - wanted}", flush=True)
    return False


def _hour(row: dict[str, Any]) -> str:
    return str(row["window_start"][11:13])


def _reported(hourly: list[dict[str, Any]]) -> Truth:
    return Counter((row["country"], _hour(row), row["events"]) for row in hourly)


def _hourly(events: list[dict[str, Any]]) -> Truth:
    counts = Counter((e["country"].upper(), e["event_time"][11:13]) for e in events)
    return Counter((country, hour, n) for (country, hour), n in counts.items())


def _sessions(events: list[dict[str, Any]]) -> Truth:
    """Sessions by user, start and number of events: a longer pause than the gap ends one."""
    times: defaultdict[str, list[datetime]] = defaultdict(list)
    for event in events:
        times[event["user_id"]].append(datetime.fromisoformat(event["event_time"]))
    found: Truth = Counter()
    for user, all_times in times.items():
        session: list[datetime] = []
        for at in sorted(all_times):
            if session and at - session[-1] > GAP:
                found[user, f"{session[0]:%H:%M:%S}", len(session)] += 1
                session = []
            session.append(at)
        found[user, f"{session[0]:%H:%M:%S}", len(session)] += 1
    return found


if __name__ == "__main__":
    sys.exit(main())
