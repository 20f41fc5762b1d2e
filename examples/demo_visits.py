"""`make demo-visits`: two tutorials on counting visits, each step with what they promise."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demo_kit import generate, local_broker, must, rows, say, start, totals, typed, wait_until

from headgate.brokers import KafkaBroker
from headgate.home.layout import Home

HERE = Path(__file__).resolve().parent / "visits"
_WINDOW_SECONDS = 45


def main() -> int:
    """Both tutorials on one broker; exit code 1 if a promise is not kept or a visit is lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path("build/demo-visits"), help="where to work")
    parser.add_argument("--servers", help="a Kafka broker that runs already: host:port")
    options = parser.parse_args()
    home: Path = options.dir / "home"
    with local_broker(KafkaBroker, options.dir, running=options.servers) as servers:
        kept = Checkpointer(servers, home).play()
        return 0 if Reprocessor(servers, home).play() and kept else 1


class Tutorial:
    """A job of a tutorial, with its topics on a broker."""

    job: str
    program: str
    topics: tuple[str, ...]

    def __init__(self, servers: str, home: Path) -> None:
        self.servers = servers
        self.home = home
        self.command = [
            "run", typed(HERE / self.program), "--home", str(home), "--set", f"servers={servers}"
        ]  # fmt: skip
        for topic in self.topics:
            must("topic", "create", self.address(topic))

    def address(self, topic: str) -> str:
        """Where a topic is."""
        return f"kafka://{self.servers}/{topic}"

    def counted(self, step: str) -> int:
        """How many rows a step has given, by the job's last checkpoint."""
        return totals(self.home, self.job).get(step, {}).get("records_out", 0)

    def cancel(self, running: subprocess.Popen[bytes]) -> None:
        """End the job after its batch; its checkpoints stay."""
        must("stop", self.job, "--no-savepoint", "--home", str(self.home))
        running.wait()

    def newest_checkpoint(self) -> int:
        """The number of the job's last checkpoint."""
        run = Home(str(self.home)).job(self.job).current()
        record = run.latest_checkpoint() if run else None
        assert record is not None
        return record.id


class Checkpointer(Tutorial):
    """Windows of 45 seconds, a row after every fourth visit; stopped, and started where it was."""

    job, program, topics = "visit_windows", "windows.py", ("generated_visits", "visit_windows")

    def play(self) -> bool:
        """The tutorial's steps; whether its promises were kept."""
        say("FAULT TOLERANCE: a job that counts visits in windows of 45 seconds")
        sent = self._generate(0, 60)
        running = start(*self.command)
        wait_until(running, lambda: self.counted("visits") == sent)
        sent += self._generate(60, 120)
        wait_until(running, lambda: self.counted("visits") == sent)
        say("it has made checkpoints, and is stopped; these were its last rows")
        self.cancel(running)
        must("checkpoint", "list", self.job, "--home", str(self.home))
        before = rows(self.address("visit_windows"))
        for row in before[-3:]:
            print(_text(row), flush=True)

        later = self._generate(120, 200)
        say("started from its newest checkpoint; at the end all windows are closed")
        must(*self.command, "--from", "latest", "--bounded", "--drain")
        run = Home(str(self.home)).job(self.job).current()
        assert run is not None
        read = sum(c.rows.get("visits", {}).get("records_out", 0) for c in run.checkpoints())
        return self._account(before, sent, later, read)

    def _generate(self, first: int, last: int) -> int:
        """Send the visits of some seconds; gives how many they are."""
        before = len(rows(self.address("generated_visits")))
        generate(self.address("generated_visits"), HERE / "generate_visits.py", "--first",
                 str(first), "--last", str(last))  # fmt: skip
        return len(rows(self.address("generated_visits"))) - before

    def _account(self, before: list[dict[str, Any]], sent: int, later: int, read: int) -> bool:
        """Compare the last row of every window with a count made by hand."""
        found = rows(self.address("visit_windows"))
        last = {_window(r): r["visits"] for r in found if not r["is_partial"]}
        right = last == _windows(rows(self.address("generated_visits")))
        right &= len(found) > len(before)
        right &= sum(not r["is_partial"] for r in found) == len(last)
        print("the tutorial promises   windows from the newest offset, not from the beginning")
        print(f"it read                 {read} visits of {sent + later}: those sent since the stop")
        print(
            f"{sum(last.values())} visits in the last rows of {len(last)} windows, "
            f"{sent + later} were sent: {'each is counted once' if right else 'NOT RIGHT'}",
            flush=True,
        )
        return right and read == later


class Reprocessor(Tutorial):
    """Windows of 15 minutes with partial rows; the last update again from a checkpoint."""

    job, program = "visits_counter", "visits.py"
    topics = ("visits", "visits_counter", "visits_late")

    def play(self) -> bool:
        """The tutorial's steps; whether its promises were kept."""
        say("REPROCESSING: six visits, then a job that counts them in windows of 15 minutes")
        self._send("first")
        running = start(*self.command)
        wait_until(running, lambda: self.counted("visits") == 6)
        say("four more visits make the first row")
        self._send("second")
        wait_until(running, lambda: self.counted("visits_counter") == 1)
        kept = self._compare("a partial row of 10 visits (twice: nothing came in between)", [10])
        chosen = self.newest_checkpoint()

        say("two more visits update it")
        self._send("third")
        wait_until(running, lambda: self.counted("visits_counter") == 2)
        kept &= self._compare("then a partial row of 12 visits", [10, 12])
        self.cancel(running)
        must("checkpoint", "list", self.job, "--home", str(self.home))

        say(f"a new run from checkpoint {chosen}, which has the first ten visits")
        must(*self.command, "--from", f"ck:{chosen}", "--bounded")
        kept &= self._compare("the row of 12 visits again", [10, 12, 12])

        say("the same run goes on, and ends: it says nothing again, and closes the window")
        must(*self.command, "--bounded", "--drain")
        kept &= self._compare("(nothing: its demo ends before)", [10, 12, 12], final=12)
        must("show", self.job, "--steps", "--home", str(self.home))
        sent, late = (len(rows(self.address(topic))) for topic in ("visits", "visits_late"))
        last = [row for row in rows(self.address("visits_counter")) if not row["is_partial"]]
        counted = sum(row["visits"] for row in last)
        kept = kept and sent == counted + late
        print(
            f"{counted} visits in the last row + {late} too late, {sent} were sent: "
            f"{'each is counted once' if kept else 'NOT RIGHT'}",
            flush=True,
        )
        return kept

    def _send(self, name: str) -> None:
        must("topic", "produce", self.address("visits"), "--file",
             typed(HERE / "records" / f"{name}.jsonl"))  # fmt: skip

    def _compare(self, promise: str, partial: list[int], *, final: int | None = None) -> bool:
        """Show the topic beside the promise; whether it has exactly these rows."""
        wanted = [(visits, True) for visits in partial] + ([(final, False)] if final else [])
        found = rows(self.address("visits_counter"))
        print(f"the tutorial promises   {promise}")
        for number, row in enumerate(found):
            print(f"{'' if number else 'the topic has':24}{_text(row)}", flush=True)
        times = {(row["visit_id"], *_times(row)) for row in found}
        return (
            times == {(1, "10:00:00", "10:15:00")}
            and [(row["visits"], row["is_partial"]) for row in found] == wanted
        )


def _times(row: dict[str, Any]) -> tuple[str, str]:
    return row["window_start"][11:19], row["window_end"][11:19]


def _window(row: dict[str, Any]) -> tuple[int, str]:
    return row["visit_id"], _times(row)[0]


def _text(row: dict[str, Any]) -> str:
    start, end = _times(row)
    kind = "partial" if row["is_partial"] else "final"
    return f"visit {row['visit_id']}, {start} to {end}, visits {row['visits']}, {kind}"


def _windows(visits: list[dict[str, Any]]) -> dict[tuple[int, str], int]:
    """How many visits are in each window."""
    counts: Counter[tuple[int, str]] = Counter()
    for visit in visits:
        at = datetime.fromisoformat(f"{visit['event_time']}+00:00").timestamp()
        begin = datetime.fromtimestamp(at - at % _WINDOW_SECONDS, UTC)
        counts[visit["visit_id"], f"{begin:%H:%M:%S}"] += 1
    return dict(counts)


if __name__ == "__main__":
    sys.exit(main())
