"""Mistakes that people make: each is told in one sentence with a remedy and the right exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import pytest
from pyspark.sql import SparkSession

from headgate.base.errors import ExitCode
from headgate.cli.app import load_app
from headgate.cli.main import invoke
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.runtime.lease import Lease
from headgate.runtime.run import run

HEAD = """
import headgate as hg
from pyspark.sql import functions as F

ORDER = "id BIGINT, userId BIGINT, price DOUBLE, note STRING"
USER = "id BIGINT, name STRING"


@hg.job("shop")
def shop(job: hg.Job) -> None:
    orders = job.source("orders", hg.topic("log:orders", schema=ORDER))
    users = job.table("users", hg.topic("log:users", schema=USER), key="id")
    out = hg.topic("log:out")
"""
GOOD = "orders.lookup('users_lookup', users, on='userId').sink('out', out)"


def program(body: str) -> str:
    return HEAD + indent(body, "    ") + "\n"


@dataclass(frozen=True)
class Mistake:
    """What somebody wrote, and what they are told."""

    name: str
    body: str
    says: tuple[str, ...]
    """The step or thing, what is wrong and what to do, as far as it must be said."""
    code: ExitCode = ExitCode.USAGE
    line: bool = True
    """The sentence ends with the user's own line."""


IN_THE_GRAPH = [
    Mistake(
        "a join of a stream without a key",
        "orders.join('paid', orders, within=hg.between('0 s', '1 minute')).sink('out', out)",
        ("a stream without a key has no method 'join'", 'stream.key_by("column").join(...)'),
    ),
    Mistake(
        "a method by PySpark's name",
        "orders.filter('id > 1').sink('out', out)",
        ("has no method 'filter'", 'use where("condition")'),
    ),
    Mistake(
        "a typo in a method",
        "orders.slect('id').sink('out', out)",
        ("has no method 'slect'", "did you mean select?"),
    ),
    Mistake(
        "bad step name",
        "orders.lookup('users lookup', users, on='userId').sink('out', out)",
        ("the name of a lookup must be a letter", "got 'users lookup'", "rename the step"),
    ),
    Mistake(
        "duplicate name",
        "for name in ('out', 'out'): orders.sink(name, out)",
        ("step 'out'", "already used by a sink at", "give each step its own name"),
    ),
    Mistake(
        "missing column in select",
        "orders.select('id', 'prise').sink('out', out)",
        ("there is no column 'prise' in the select", "did you mean 'price'?"),
    ),
    Mistake(
        "missing column in where",
        "orders.where('amount > 1').sink('out', out)",
        ("there is no column 'amount' in the where", "one of id, userId", "use one of the columns"),
    ),
    Mistake(
        "missing column in drop",
        "orders.drop('amount').sink('out', out)",
        ("there is no column 'amount' to drop", "correct the name"),
    ),
    Mistake(
        "condition that is none",
        "orders.where('price + 1').sink('out', out)",
        ("the where does not fit the stream", "correct the expression"),
    ),
    Mistake(
        "expression that is no SQL",
        "orders.where('price >').sink('out', out)",
        ("the where is not SQL: Syntax error at or near end of input", "correct the expression"),
    ),
    Mistake(
        "wrong key type",
        "orders.lookup('users_lookup', users, on='note').sink('out', out)",
        ("step 'users_lookup'", "expected BIGINT, got STRING", "cast it"),
    ),
    Mistake(
        "wrong number of key parts",
        "orders.lookup('users_lookup', users, on=['userId', 'id']).sink('out', out)",
        ("on must have 1 expression(s)", "key of table 'users', got 2", "for each part"),
    ),
    Mistake(
        "missing column in a key",
        "orders.lookup('users_lookup', users, on='user_id').sink('out', out)",
        ("there is no column 'user_id' in the lookup's key (on)", "did you mean 'userId'?"),
    ),
    Mistake(
        "lookup in a stream",
        "orders.lookup('users_lookup', orders, on='userId').sink('out', out)",
        ("a lookup must have a table, got SourceStream", "make one with job.table(...)"),
    ),
    Mistake(
        "unknown missing mode",
        "orders.lookup('users_lookup', users, on='userId', missing='skip').sink('out', out)",
        (
            "missing must be 'null', 'drop', 'side' or Wait(...), got 'skip'",
            "'side' sends it to .missing",
        ),
    ),
    Mistake(
        "column exists already",
        "orders.lookup('users_lookup', users, on='userId', into='note').sink('out', out)",
        ("the stream already has a column 'note'", "choose another name with into"),
    ),
    Mistake(
        "unset param",
        "orders.sink('out', hg.topic(job.param('target')))",
        ("the parameter 'target' is not set", "--set target=VALUE"),
    ),
    Mistake(
        "stateful transform",
        "orders.transform('sums', lambda df: df.groupBy('userId').count()).sink('out', out)",
        ("step 'sums'", "an aggregation", "which keeps state", "use a step of Headgate"),
    ),
    Mistake(
        "transform that returns nothing",
        "orders.transform('clean', lambda df: print(end='')).sink('out', out)",
        ("step 'clean'", "must return a DataFrame", "got NoneType", "return the DataFrame"),
    ),
    Mistake(
        "transform that raises",
        "orders.transform('clean', lambda df: df.select(1 / 0)).sink('out', out)",
        ("ZeroDivisionError", "division by zero", "correct the line"),
    ),
    Mistake(
        "unknown side output",
        "orders.side('late').sink('out', out)",
        ("step 'orders'", "there is no side output 'late'", "use a side output"),
    ),
    Mistake(
        "side output that was not asked for",
        "orders.malformed.sink('out', out)",
        ("there is no side output 'malformed'", "malformed='side'"),
    ),
    Mistake(
        "no sink",
        "orders.select('id')",
        ("the job 'shop' has no sink", "end a stream with .sink(name, ...)"),
        line=False,
    ),
    Mistake(
        "sink that is none",
        "orders.sink('out', 'log:out')",
        ("sink must be a topic, FilesSink, ", "got 'log:out'", "for instance hg.topic("),
    ),
    Mistake(
        "event time that is no timestamp",
        "job.source('late', hg.topic('log:orders', schema=ORDER),\n"
        "           event_time=hg.event_time('id')).sink('out', out)",
        ("step 'late'", "expected a TIMESTAMP, got BIGINT", "timestamp_millis"),
    ),
    Mistake(
        "bad address",
        "orders.sink('out', hg.topic('s3:data/out'))",
        ("the topic's address must be log:PATH, kafka:", "got 's3:data/out'", "with its scheme"),
    ),
    Mistake(
        "Pulsar service without a port",
        "orders.sink('out', hg.topic('pulsar://localhost/out'))",
        ("step 'out'", "the address of a Pulsar service must be", "write host and port"),
    ),
    Mistake(
        "source without a schema",
        "job.source('more', hg.topic('log:orders')).sink('out', out)",
        ("must have a schema to be read", "give it one"),
    ),
    Mistake(
        "schema that is none",
        "job.source('more', hg.topic('log:orders', schema='id BIGNUM')).sink('out', out)",
        ("the schema does not parse", "BIGNUM", "write it like"),
    ),
    Mistake(
        "topic that is not there",
        "job.source('more', hg.topic('log:nowhere', schema=ORDER)).sink('out', out)",
        ("step 'more'", "there is no topic at log:nowhere", "headgate topic create log:nowhere"),
        code=ExitCode.NOT_FOUND,
    ),
    Mistake(
        "bad duration",
        "orders.lookup('l', users, on='userId', missing=hg.Wait('a while')).sink('out', out)",
        ("Wait.timeout must be a timedelta or text", "got 'a while'", "write a number and a unit"),
    ),
    Mistake(
        "random value to an exactly-once sink",
        "orders.with_columns(lot=F.rand()).sink('out', out)",
        ("rand(", "gives another value when a batch is replayed", "derive the value"),
    ),
    Mistake(
        "random key of a lookup",
        "orders.lookup('l', users, on='CAST(rand() * 9 AS BIGINT)').sink('out', out)",
        ("step 'l'", "rand(", "the sink 'out' cannot be exactly once", "derive the value"),
    ),
    Mistake(
        "random column taken from a table",
        "orders.lookup('l', users, on='userId', take=['uuid() AS u']).sink('out', out)",
        ("step 'l'", "uuid()", "the sink 'out' cannot be exactly once", "derive the value"),
    ),
    Mistake(
        "random key of a sink",
        "orders.sink('out', hg.topic('log:out', key='uuid()'))",
        ("step 'out'", "uuid()", "the sink 'out' cannot be exactly once", "derive the value"),
    ),
    Mistake(
        "random value in a transform",
        "orders.transform('mark', lambda df: df.selectExpr('*', 'uuid() AS u')).sink('out', out)",
        ("step 'mark'", "uuid()", "the sink 'out' cannot be exactly once", "derive the value"),
    ),
]

IN_THE_FILE = [
    Mistake(
        "syntax error",
        "import headgate as hg\ndef shop(:\n",
        ("app.py has a syntax error", "correct the line"),
    ),
    Mistake(
        "exception at import",
        "import headgate as hg\nlimit = int('many')\n",
        ("importing app.py failed with ValueError", "'many'", "correct the line"),
    ),
    Mistake(
        "no job in the file",
        "import headgate as hg\n",
        ("defines no job", "@hg.job"),
        code=ExitCode.NOT_FOUND,
        line=False,
    ),
    Mistake(
        "bad job name",
        "import headgate as hg\n@hg.job('my shop')\ndef shop(job): ...\n",
        ("a job's name must be a letter", "got 'my shop'", "rename the job"),
    ),
    Mistake(
        "checkpoints too close to each other",
        "import headgate as hg\n@hg.job('s', checkpoints=hg.Checkpoints(every='1 millisecond'))\n"
        "def shop(job): ...\n",
        (
            "Checkpoints.every must be 0 seconds, or at least 10 milliseconds",
            "got",
            "a checkpoint is a micro-batch",
        ),
    ),
    Mistake(
        "checkpoints with a bad time",
        "import headgate as hg\n@hg.job('s', checkpoints=hg.Checkpoints(every='soon'))\n"
        "def shop(job): ...\n",
        (
            "Checkpoints.every must be a timedelta or text",
            "got 'soon'",
            "write a number and a unit",
        ),
    ),
    Mistake(
        "function of the job that takes nothing",
        "import headgate as hg\n@hg.job('shop')\ndef shop(): ...\n",
        ("the function of job 'shop' must take the job", "def shop(job: hg.Job)", "job.param"),
    ),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with topics and a home of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path / "home"))
    for name in ("orders", "users"):
        TopicFiles(tmp_path / name).create(1)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("app", None)


def the_sentence(text: str) -> str:
    """What was said, if it is one line and no stack trace."""
    assert "Traceback" not in text
    lines = [line for line in text.splitlines() if line.strip()]
    assert not [line for line in lines if line.startswith(("\tat ", "  File ", "Caused by"))], text
    assert len(lines) == 1 and lines[0].startswith("error: "), text
    assert ": " in lines[0].removeprefix("error: "), "a remedy follows a colon"
    return lines[0]


def message_of(capfd: pytest.CaptureFixture[str], *args: str, code: ExitCode) -> str:
    """Run a command that must fail so, and give its sentence."""
    got = invoke(args)
    said = capfd.readouterr()
    assert got == code, said.err
    return the_sentence(said.err)


@pytest.mark.parametrize("mistake", IN_THE_GRAPH, ids=lambda m: m.name)
def test_graph(
    mistake: Mistake, folder: Path, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "app.py").write_text(program(mistake.body))
    sentence = message_of(capfd, "check", "app.py", code=mistake.code)
    for part in mistake.says:
        assert part in sentence
    assert not mistake.line or f"{folder / 'app.py'}:{HEAD.count(chr(10)) + 1}]" in sentence


@pytest.mark.parametrize("mistake", IN_THE_FILE, ids=lambda m: m.name)
def test_file(
    mistake: Mistake, folder: Path, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "app.py").write_text(mistake.body)
    sentence = message_of(capfd, "check", "app.py", code=mistake.code)
    for part in mistake.says:
        assert part in sentence
    assert not mistake.line or f"{folder / 'app.py'}:2]" in sentence


@pytest.mark.parametrize(
    ("args", "says", "code"),
    [
        (("run", "none.py"), ("no file none.py", "check the path"), ExitCode.NOT_FOUND),
        (
            ("run", "shop"),
            ("must be path/to/file.py", "got 'shop'", "name the file"),
            ExitCode.USAGE,
        ),
        (("run", "app.py:store"), ("defines no job 'store'", "app.py:shop"), ExitCode.NOT_FOUND),
        (
            ("run", "app.py", "--set", "a"),
            ("--set must be NAME=VALUE", "for instance"),
            ExitCode.USAGE,
        ),
        (("run", "app.py", "--fast"), ("No such option", "--help"), ExitCode.USAGE),
        (
            ("run", "app.py", "--parallelism", "0"),
            ("parallelism must be 1 or more", "got 0"),
            ExitCode.USAGE,
        ),
        (
            ("run", "app.py", "--name", "a b"),
            ("a job's name must be", "got 'a b'", "rename"),
            ExitCode.USAGE,
        ),
        (("run", "app.py", "other.py"), ("unexpected argument", "one APP"), ExitCode.USAGE),
        (
            ("check", "app.py:shp"),
            ("defines no job 'shp'", "did you mean app.py:shop? it has: app.py:shop"),
            ExitCode.NOT_FOUND,
        ),
        (
            ("check", "app.py", "--set", "rate=3"),
            ("the job has no parameter 'rate'", "correct or remove it"),
            ExitCode.USAGE,
        ),
        (("show", "shop"), ("there is no job 'shop'", "headgate run"), ExitCode.NOT_FOUND),
        (
            ("topic", "read", "log:none"),
            ("there is no topic at log:none", "headgate topic create"),
            ExitCode.NOT_FOUND,
        ),
        (
            ("topic", "read", "log:order"),
            ("did you mean log:orders? If not, create it with", "headgate topic create log:order"),
            ExitCode.NOT_FOUND,
        ),
        (("topic", "descibe", "log:x"), ("did you mean 'describe'? see headgate",), ExitCode.USAGE),
        (
            ("topic", "produce", "log:orders", "--file", "/root_only/x"),
            ("there is no file /root_only/x", "check the path"),
            ExitCode.NOT_FOUND,
        ),
        (("topic", "read", "orders"), ("did you mean log:orders?",), ExitCode.USAGE),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_command_line(
    args: tuple[str, ...],
    says: tuple[str, ...],
    code: ExitCode,
    folder: Path,
    spark: SparkSession,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (folder / "app.py").write_text(program(GOOD))
    sentence = message_of(capfd, *args, code=code)
    for part in says:
        assert part in sentence


@pytest.mark.parametrize("args", [("run", "app.py"), ("list",), ("show", "shop")])
def test_a_file_where_the_home_should_be(
    args: tuple[str, ...], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "app.py").write_text(program(GOOD))
    (folder / "home").write_text("not a folder")
    sentence = message_of(capfd, *args, code=ExitCode.FAILED)
    assert "a file is where a folder should be: choose another home with --home" in sentence


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_written(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "app.py").write_text(program(GOOD))
    (folder / "home").mkdir(mode=0o500)
    sentence = message_of(capfd, "run", "app.py", code=ExitCode.FAILED)
    assert str(folder / "home") in sentence and "--home" in sentence


def test_a_second_copy(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "app.py").write_text(program(GOOD))
    with Lease(Home(folder / "home").job("shop")):
        sentence = message_of(capfd, "run", "app.py", code=ExitCode.REFUSED)
    assert "shop" in sentence and str(os.getpid()) in sentence


def test_a_snapshot_that_is_not_there(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "app.py").write_text(program(GOOD))
    sentence = message_of(capfd, "run", "app.py", "--from", "sp:gone", code=ExitCode.NOT_FOUND)
    assert "job 'shop' has no savepoint 'gone'" in sentence and "it has: no savepoints" in sentence


def test_fresh_and_from_at_once(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "app.py").write_text(program(GOOD))
    sentence = message_of(
        capfd, "run", "app.py", "--fresh", "--from", "latest", code=ExitCode.USAGE
    )
    assert "--fresh" in sentence and "latest" in sentence


def headgate(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """A real process, as at run time the mistake is one of the data."""
    environment = {**os.environ, "HEADGATE_MASTER": "local[1]"}
    return subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", *args], cwd=folder, env=environment,
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip


# what the JVM and the run itself say before the mistake is met
_BEFORE = re.compile(r"WARNING: Using incubator modules|\d\d:\d\d:\d\d (starting Spark|job shop)")


def produce(folder: Path, body: str, record: str) -> None:
    good = json.dumps({"id": 1, "price": 2.5, "note": "1"})
    TopicFiles(folder / "orders").append([Record(good), Record(record)])
    (folder / "app.py").write_text(program(body))


def test_python_function_that_raises(folder: Path, spark: SparkSession) -> None:
    body = """
half = F.udf(lambda note: str(int(note) / 2), "string")
orders.with_columns(half=half("note")).sink("out", out)
"""
    produce(folder, body, '{"id": 2, "note": "three"}')
    outcome = run(load_app("app.py").job, bounded=True, spark=spark)
    assert outcome.exit_code == ExitCode.FAILED
    sentence = the_sentence(f"error: {outcome.error}")
    assert "ValueError: invalid literal" in sentence and "'three'" in sentence
    assert f"{folder / 'app.py'}:{HEAD.count(chr(10)) + 2}: fix the code" in sentence


@pytest.mark.slow
def test_broken_json_in_a_quiet_process(folder: Path) -> None:
    produce(folder, GOOD, '{"id": 2, "pri')
    ended = headgate(folder, "run", "app.py", "--bounded")
    assert ended.returncode == ExitCode.FAILED, ended.stderr
    lines = [line for line in ended.stderr.splitlines() if not _BEFORE.match(line)]
    sentence = the_sentence("\n".join(lines))
    for part in ("step 'orders'", "partition 0 offset 1", "does not parse", "malformed='side'"):
        assert part in sentence
    events = [json.loads(f.read_text()) for f in (folder / "home").rglob("events/*failed.json")]
    assert [e["details"]["reason"] for e in events] == ["MALFORMED_RECORD"]


@pytest.mark.slow
def test_debug_tells_the_whole_story(folder: Path) -> None:
    body = "orders.select('CAST(note AS BIGINT) AS n').sink('out', out)"
    produce(folder, body, '{"id": 2, "note": "three"}')
    ended = headgate(folder, "run", "app.py", "--bounded", "--debug")
    assert ended.returncode == ExitCode.FAILED, ended.stderr
    assert "Traceback" in ended.stderr and "\tat org.apache.spark" in ended.stderr
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("error: an expression in the job failed on a row")
    assert "'three'" in last and last.endswith(
        ": correct the expression (headgate explain EXPRESSION)"
    )
