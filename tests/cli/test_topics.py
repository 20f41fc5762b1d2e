"""`headgate topic` on embedded topics, in this process and as a command with pipes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.cli.main import invoke


@pytest.fixture
def address(tmp_path: Path) -> str:
    address = f"log:{tmp_path}/orders"
    assert invoke(["topic", "create", address, "--partitions", "2", "--quiet"]) == 0
    return address


def headgate(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    code = "from headgate.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def lines(address: str, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    capsys.readouterr()
    assert invoke(["topic", "read", address, *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_topic_that_fits_may_be_made_twice(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["topic", "create", address, "--partitions", "2"]) == 0
    assert capsys.readouterr().err == f"{address} already exists\n"
    assert invoke(["topic", "create", address, "--partitions", "3"]) == 5
    err = capsys.readouterr().err
    assert "already exists (expected 3 partitions, got 2): pass --partitions 2" in err


def test_records_go_in_and_come_out(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "orders.jsonl"
    source.write_text("".join(f'{{"id":{i}}}\n' for i in range(10)) + "\n")
    assert invoke(["topic", "produce", address, "--file", str(source)]) == 0
    err = capsys.readouterr().err
    assert err == f"produced 10 records to {address} (1 blank lines left out)\n"
    assert sorted(lines(address, capsys)) == sorted(f'{{"id":{i}}}' for i in range(10))
    assert len(lines(address, capsys, "--limit", "3")) == 3
    assert lines(address, capsys, "--from", "latest") == []
    assert lines(address, capsys, "--limit", "0") == []


def test_a_key_field_sends_equal_keys_to_one_partition(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "orders.jsonl"
    source.write_text("".join(f'{{"id":{i % 5},"n":{i}}}\n' for i in range(50)))
    assert invoke(["topic", "produce", address, "--file", str(source), "--key", "id"]) == 0
    records = [json.loads(line) for line in lines(address, capsys, "--json")]
    assert len(records) == 50
    assert {record["version"] for record in records} == {1}
    places = {(record["key"], record["partition"]) for record in records}
    assert len(places) == 5
    assert {key for key, _ in places} == {"0", "1", "2", "3", "4"}
    assert all(json.loads(r["value"])["id"] == int(r["key"]) for r in records)


def test_lines_with_keys_may_delete(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = headgate("topic", "produce", address, "--with-keys", text='1\t{"id":1}\n1\t\n')
    assert done.returncode == 0, done.stderr
    assert lines(address, capsys, "--keys") == ['1\t{"id":1}', "1\t"]
    values = [json.loads(line)["value"] for line in lines(address, capsys, "--json")]
    assert values == ['{"id":1}', None]


def test_a_time_is_a_place_to_start(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert headgate("topic", "produce", address, text="1\n").returncode == 0
    time.sleep(0.05)
    between = datetime.now(UTC).isoformat()
    time.sleep(0.05)
    assert headgate("topic", "produce", address, text="2\n").returncode == 0
    assert lines(address, capsys, "--from", between) == ["2"]


def test_one_partition_can_be_chosen(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = headgate("topic", "produce", address, "--partition", "1", text="a\nb\n")
    assert done.returncode == 0
    capsys.readouterr()
    assert invoke(["topic", "describe", address, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [p["records"] for p in told["partitions"]] == [0, 2]
    assert told["records"] == 2
    assert invoke(["topic", "describe", address]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "PARTITION", "FIRST", "OFFSET", "END", "OFFSET", "RECORDS",
    ]  # fmt: skip


def test_a_rate_is_kept(address: str) -> None:
    began = time.monotonic()
    done = headgate("topic", "produce", address, "--rate", "50", text="x\n" * 50)
    assert done.returncode == 0
    assert time.monotonic() - began >= 0.9


def test_a_bad_line_is_named_and_those_before_it_are_sent(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = headgate("topic", "produce", address, "--key", "id", text='{"id":1}\n{"other":2}\n')
    assert done.returncode == 2
    assert done.stderr.startswith("error: line 2 has no field 'id': correct the line")
    assert lines(address, capsys) == ['{"id":1}']


def test_follow_waits_for_more(address: str) -> None:
    code = "from headgate.cli.main import main; main()"
    reader = subprocess.Popen(
        [sys.executable, "-c", code, "topic", "read", address, "--follow", "--limit", "2"],
        stdout=subprocess.PIPE,
        text=True,
    )
    for text in ("first\n", "second\n"):
        assert headgate("topic", "produce", address, text=text).returncode == 0
    out, _ = reader.communicate(timeout=30)
    assert out == "first\nsecond\n"
    assert reader.returncode == 0


def test_a_reader_that_goes_away_is_not_an_error(address: str) -> None:
    assert headgate("topic", "produce", address, text="x" * 100 + "\n" + "y\n" * 50_000)
    code = "from headgate.cli.main import main; main()"
    command = f"'{sys.executable}' -c '{code}' topic read {address} | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create", "orders"], 2, "did you mean log:orders?"),
        (["create", "kafka://localhost/orders"], 2, "expected kafka://host:port"),
        (["read", "pulsar://localhost/orders"], 2, "must be pulsar://host:port"),
        (["read", "log:nowhere/at_all"], 3, "create it with `headgate topic create"),
        (["produce", "log:nowhere/at_all"], 3, "no topic at log:nowhere/at_all"),
        (["create", "log:x", "--partitions", "0"], 2, "--partitions"),
        (["create", "log:x", "--retention", "7d"], 2, "keeps every record"),
        (["create", "log:x", "--compact"], 2, "keeps every record"),
        (["create", "log:x", "--retention", "soon"], 2, "--retention must be a timedelta or text"),
        (["create", "log:x", "--replication", "2"], 2, "leave out --replication"),
        (["create", "log:x", "--option", "acks=1"], 2, "leave out --option"),
    ],
)
def test_mistakes_have_a_sentence_and_a_code(
    arguments: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["topic", *arguments]) == code
    err = capsys.readouterr().err
    assert said in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--file", "no_such_file"], 3, "no file no_such_file"),
        (["--partition", "2"], 2, "no partition 2 (expected 0 to 1)"),
        (["--key", "id", "--with-keys"], 2, "exclude each other"),
        (["--rate", "0"], 2, "--rate must be greater than zero"),
    ],
)
def test_bad_produce_options_are_refused(
    address: str, options: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["topic", "produce", address, *options]) == code
    assert said in capsys.readouterr().err


def test_a_place_that_is_none_is_refused(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["topic", "read", address, "--from", "yesterday"]) == 2
    assert "earliest, latest or a time" in capsys.readouterr().err
