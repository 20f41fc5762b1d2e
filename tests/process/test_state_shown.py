"""State as it is shown: times in UTC in any zone, keys of maps of every type, and null keys."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import headgate as hg
from headgate.base.errors import ExitCode
from headgate.cli.main import invoke
from headgate.home.layout import Home
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from headgate.state.plain import json_value, plain_rows
from headgate.testing import JobDriver

NOON = datetime(2026, 1, 1, 12, 0, 0, 123456)
FIRST, SECOND = datetime(2026, 11, 1, 5, 30), datetime(2026, 11, 1, 6, 30)
"""Both are 1:30 in New York, where clocks go back between them."""


@pytest.fixture
def _in_new_york() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        assert datetime.fromtimestamp(0) == datetime(1969, 12, 31, 19)
        yield
    time.tzset()


@dataclass
class Seen:
    at: datetime
    more: list[datetime]
    by: dict[datetime, datetime]


class Times(hg.Process):
    """Keeps times in every kind of state."""

    last = hg.value_state(Seen)
    both = hg.list_state(datetime)
    by_time = hg.map_state(datetime, datetime)
    rings = hg.timer("event")

    def on_events(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
        self.last.set(Seen(row.at, [FIRST, SECOND], {FIRST: SECOND, SECOND: FIRST}))
        self.both.extend([FIRST, SECOND])
        self.by_time.update({FIRST: SECOND, SECOND: FIRST})
        self.rings.set(SECOND)
        yield "seen"

    def on_rings(self, ctx: hg.Context) -> None:
        pass


class Kinds(hg.Process):
    """Keeps maps with keys of many types."""

    days = hg.map_state(date, Decimal)
    prices = hg.map_state(Decimal, date)
    parts = hg.map_state(bytes, bytes)
    nested = hg.value_state(dict[bytes, list[float]])

    def on_events(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
        self.days[date(2026, 1, 2)] = Decimal("0")
        self.prices[Decimal("0.5")] = date(2026, 1, 2)
        self.parts[b"\x01\xff"] = b"abc"
        self.nested.set({b"\xff": [float("nan"), 1.5]})
        yield "seen"


@hg.job("shown")
def shown(job: hg.Job) -> None:
    schema = "at TIMESTAMP, wall TIMESTAMP_NTZ, id BINARY, n INT, name STRING"
    events = job.source(
        "events", hg.topic("log:events", schema=schema), event_time=hg.event_time("at")
    )
    times = job.process("times", Times(), events=events.key_by("at", "wall"))
    times.sink("out", hg.topic("log:out"))
    kinds = job.process("kinds", Kinds(), events=events.key_by("id", "n", "name"))
    kinds.sink("kinds_out", hg.topic("log:kinds_out"))


def event(id: bytes | None, n: int | None, name: str | None = None) -> dict[str, object]:
    return {"at": NOON.isoformat(), "wall": NOON.isoformat(), "id": id, "n": n, "name": name}


class Shell:
    """Asks for the state of the driver's job on the command line."""

    def __init__(self, home: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._home = home
        self._capsys = capsys

    def __call__(self, verb: str, step: str, *words: str, at: str = "") -> Any:
        code, out, err = self.run(verb, step, *words, at=at)
        assert code == ExitCode.DONE, err
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    def run(self, verb: str, step: str, *words: str, at: str = "") -> tuple[int, str, str]:
        self._capsys.readouterr()
        code = invoke(["state", verb, f"shown{at}", step, *words, "--json", "--home", self._home])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err


@pytest.mark.usefixtures("_in_new_york")
def test_times_are_utc_in_any_zone(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    key = {"at": NOON, "wall": NOON}
    kept = {
        "last": {"at": NOON, "more": [FIRST, SECOND], "by": {FIRST: SECOND, SECOND: FIRST}},
        "both": [FIRST, SECOND],
        "by_time": {FIRST: SECOND, SECOND: FIRST},
        "rings": SECOND,
    }
    with JobDriver(shown) as t:
        t.send("events", event(None, None)).run()
        t.savepoint("one")
        shell = Shell(t.home, capsys)
        reader = StateReader(spark, find_snapshot(Home(t.home), "latest", "shown"))
        zoned = NOON.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=2)))
        for name, value in kept.items():
            view = t.state("times", name)
            assert view.all() == [{"key": key, name: value}]
            for at in (NOON, zoned):
                assert view.get(at=at, wall=NOON) == value
                (row,) = plain_rows(reader.get("times", {"at": at, "wall": NOON}, name))
                assert (row["key"], row[name]) == (key, value)
            texts = json_value({"key": key, name: value})
            for at in (NOON, zoned):
                words = ("--key", f"at={at.isoformat()}", "--key", f"wall={NOON}")
                got = shell("get", "times", *words, "--state", name)
                assert (got["key"], got["state"]) == (texts["key"], {name: texts[name]})
            (row,) = shell("scan", "times", "--state", name, "--where", f"key.at = '{NOON}'")[
                "rows"
            ]
            assert {n: v for n, v in row.items() if n != "partition"} == texts
            file = tmp_path / name
            shell("export", "times", "--state", name, "--to", str(file))
            assert json.loads(file.read_text()) == texts
        assert shell("scan", "times", "--where", "row.rings > '2026-11-01 06:30:00'")["rows"] == []

        t.send("events", event(None, None)).run()
        (row,) = shell("diff", "times", "--state", "both", at="@sp:one")["rows"]
        assert row["key"] == {"at": str(NOON), "wall": str(NOON)}
        assert row["after"] == [str(FIRST), str(SECOND)] * 2


def test_keys_of_maps_and_steps_are_text_whatever_their_type(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with JobDriver(shown) as t:
        t.send("events", event(b"abc", 1, "x")).run()
        t.savepoint("one")
        t.send("events", event(b"\xff", 1, "x")).run()
        shell = Shell(t.home, capsys)
        zero, half = "0." + "0" * 18, "0.5" + "0" * 17
        texts = {
            "days": {"2026-01-02": zero},
            "prices": {half: "2026-01-02"},
            "parts": {"Af8=": "YWJj"},
            "nested": {"/w==": ["NaN", 1.5]},
        }
        key = {"id": "YWJj", "n": 1, "name": "x"}
        for name, text in texts.items():
            words = ("--key", "id=YWJj", "--key", "n=1", "--key", "name=x")
            got = shell("get", "kinds", *words, "--state", name)
            assert (got["key"], got["state"]) == (key, {name: text})
            (row,) = shell("scan", "kinds", "--state", name, "--where", "key.id = X'616263'")[
                "rows"
            ]
            assert (row["key"], row[name]) == (key, text)
            file = tmp_path / name
            shell(
                "export", "kinds", "--state", name, "--to", str(file), "--where", "key.id = 'abc'"
            )
            assert json.loads(file.read_text()) == {"key": key, name: text}
            diff = shell("diff", "kinds", "--state", name, at="@sp:one")
            assert diff["counts"] == {"added": 1, "removed": 0, "changed": 0}
            (added,) = diff["rows"]
            assert (added["key"]["id"], added["after"]) == ("/w==", text)
        words = ("--key", "id=abc", "--key", "n=1", "--key", "name=x")
        code, _, err = shell.run("get", "kinds", *words)
        assert code == ExitCode.USAGE
        assert "the key id must be BINARY in base64, got 'abc'" in err


def test_null_keys_are_read(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    with JobDriver(shown) as t:
        t.send("events", event(None, None, None), event(b"", 1, "null"), event(b"", 1, "")).run()
        shell = Shell(t.home, capsys)
        for words, key in (
            (["id", "n", "name"], {"id": None, "n": None, "name": None}),
            (["id=", "n=1", "name=null"], {"id": "", "n": 1, "name": "null"}),
            (["id=", "n=1", "name="], {"id": "", "n": 1, "name": ""}),
        ):
            got = shell("get", "kinds", *[w for word in words for w in ("--key", word)])
            assert got["key"] == key
        code, _, err = shell.run("get", "kinds", "--key", "id=", "--key", "n=1", "--key", "name")
        assert code == ExitCode.NOT_FOUND and "nothing for id=, n=1, name (null) at" in err
        code, _, err = shell.run("get", "kinds", "--key", "id", "--key", "n=null", "--key", "name")
        assert code == ExitCode.USAGE
        assert "the key n must be INT, got 'null'" in err
        assert "--key n for null" in err
        assert shell.run("get", "kinds", "--key", "=1")[0] == ExitCode.USAGE


@pytest.mark.usefixtures("_in_new_york")
def test_maps_with_structs_as_keys_are_shown(spark: SparkSession) -> None:
    at = "TIMESTAMP'2026-01-01 12:00:00'"
    frame = spark.sql(
        f"SELECT map(struct({at} AS at, 1 AS n), struct(array({at}, null) AS ats)) AS m,"
        f" CAST(null AS STRUCT<at: TIMESTAMP>) AS nothing"
    )
    rows = plain_rows(frame)
    noon = NOON.replace(microsecond=0)
    assert rows == [{"m": {(noon, 1): {"ats": [noon, None]}}, "nothing": None}]
    assert json_value(rows) == [
        {"m": {f'{{"at": "{noon}", "n": 1}}': {"ats": [str(noon), None]}}, "nothing": None}
    ]
