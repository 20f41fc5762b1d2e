"""Values by reference, names that are taken for secrets, and masks: without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.base.params import Reference, from_record, recorded, references
from headgate.base.params import written as as_written
from headgate.base.secrets import protect, redact, redacted, shown
from headgate.cli.main import invoke
from headgate.cli.options import parse_params


def test_a_value_may_be_in_a_file_or_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").write_text("line one\nline two\n\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONE", "@env:")
    given = parse_params(["a=@one", "b=env:ONE", "c=literal:@one", "d=literal:literal:x", "e=x@y"])
    assert given == {"a": "line one\nline two\n", "b": "@env:", "c": "@one", "d": "literal:x",
                     "e": "x@y"}  # fmt: skip
    kept = recorded(given)
    assert kept == {"a": f"@{tmp_path / 'one'}", "b": "env:ONE", "c": "@one", "d": "literal:x",
                    "e": "x@y"}  # fmt: skip
    again = as_written(from_record({"params": kept, "references": references(kept)}))
    assert parse_params([f"{name}={value}" for name, value in again.items()]) == given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("pw=env:NO_SUCH_THING", "--set pw: there is no environment variable NO_SUCH_THING: set"),
        ("pw=@/no/such/file", "--set pw: the file /no/such/file cannot be read (No such file"),
        ("hunter2", "--set must be NAME=VALUE"),
    ],
)
def test_a_reference_to_nothing_is_one_sentence(
    given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["run", "no_such_app.py", "--set", given]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: {said}") and told.count("\n") == 1 and "hunter2" not in told


def test_records_of_older_versions_are_masked_when_they_are_read() -> None:
    old = {"params": {"db_password": "@dmin", "topic": "kafka://u:pw@h/t", "n": "env:X"}}
    found = from_record(old)
    assert found == {"db_password": "******", "topic": "kafka://******@h/t", "n": "env:X"}
    assert not any(isinstance(value, Reference) for value in found.values())


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgresql://u:p@ss/w@h:5432/db", "postgresql://******@h:5432/db"),
        ("https://h/x?token=abc&n=1", "https://h/x?token=******&n=1"),
        ('Login required username="u" password="a b";',
         'Login required username="u" password=******;'),
        ('{"password": "a b", "n": 1}', '{"password": ******, "n": 1}'),
        ("pulsar://a:6650,b:6650/t@x/ns", "pulsar://a:6650,b:6650/t@x/ns"),
        ("kafka://h:9092/orders", "kafka://h:9092/orders"),
        ("log:data/me@home", "log:data/me@home"),
    ],
)  # fmt: skip
def test_what_is_masked_in_a_text(text: str, masked: str) -> None:
    assert shown("", text) == masked
    assert shown("", masked) == masked


def test_lines_of_keys_are_replaced_and_very_short_secrets_are_not() -> None:
    protect("q7", "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n")
    assert redact("q7 is not q77; it begins with MIIEvQIBADANBg") == (
        "q7 is not q77; it begins with ******"
    )
    assert redacted({"MIIEvQIBADANBg": [("MIIEvQIBADANBg", 7)]}) == {
        "MIIEvQIBADANBg": [["******", 7]]
    }
    assert shown("db_password", "q7") == "******"
