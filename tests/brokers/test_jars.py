"""Fetching pinned jars: the lock file, hashes, and what is told when it cannot be done."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.brokers.kafka import LOCK
from headgate.jvm import jars as subject
from headgate.jvm.jars import JarError, fetch, jar_cache, read_lock

ROOT = Path(__file__).resolve().parent.parent.parent


def content(name: str) -> bytes:
    return f"the jar {name}".encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock file with three jars, one of them with a classifier."""
    names = {"org.a:one:1.0": "org.a.one-1.0.jar", "org.a:two:2.0": "org.a.two-2.0.jar",
             "org.b:one:1.0:linux": "org.b.one-1.0-linux.jar"}  # fmt: skip
    path = tmp_path / "things-1.0.lock"
    lines = [f"{place} {sha256(content(file))}" for place, file in names.items()]
    path.write_text("# three jars\n\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """Stands for Ivy: brings what is asked for, but for names whose content is given."""

    def make(**wrong: bytes) -> list[list[str]]:
        asked: list[list[str]] = []

        def retrieve(jars: list[subject.Jar], aside: Path, name: str, progress: object) -> None:
            asked.append([jar.file_name for jar in jars])
            for jar in jars:
                data = wrong.get(jar.artifact, content(jar.file_name))
                (aside / jar.file_name).write_bytes(data)

        monkeypatch.setattr(subject, "_retrieve", retrieve)
        return asked

    return make


def test_the_lock_of_kafka_names_45_jars_each_once() -> None:
    jars = read_lock(LOCK)
    names = {jar.file_name for jar in jars}
    assert len(names) == len(jars) == 45
    assert "org.apache.kafka.kafka_2.13-4.3.1.jar" in names


@pytest.mark.parametrize(
    "line",
    ["org.a:one 00", "org.a:one:1.0", "org.a:one:1.0 abc", f"org.a::1.0 {'0' * 64}",
     f"org.a:one:1.0 {'0' * 64} more", f"org.a:one:1.0 {'z' * 64}"],
)  # fmt: skip
def test_a_line_that_names_no_jar_is_told_with_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.lock").write_text(f"# head\n{line}\n")
    with pytest.raises(JarError, match=r"line 2 of bad\.lock does not name a jar \(expected group"):
        read_lock(tmp_path / "bad.lock")


def test_jars_are_fetched_once_and_only_those_that_are_not_there(
    lock: Path, tmp_path: Path, registry: Callable[..., list[list[str]]],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    asked = registry()
    cache = tmp_path / "cache"
    paths = fetch(lock, cache=cache)
    assert [path.name for path in paths] == [jar.file_name for jar in read_lock(lock)]
    assert all(path.read_bytes() == content(path.name) for path in paths)
    assert f"fetching 3 jars of things-1.0 into {cache} (once)" in capsys.readouterr().err

    assert fetch(lock, cache=cache) == paths
    assert len(asked) == 1
    assert capsys.readouterr().err == ""

    paths[1].write_bytes(b"damaged")
    assert fetch(lock, cache=cache, quiet=True) == paths
    assert asked[1:] == [["org.a.two-2.0.jar"]]
    assert paths[1].read_bytes() == content(paths[1].name)
    assert capsys.readouterr().err == ""


def test_a_jar_with_another_hash_is_refused_and_nothing_of_the_fetch_counts(
    lock: Path, tmp_path: Path, registry: Callable[..., list[list[str]]]
) -> None:
    registry(two=b"something else")
    cache = tmp_path / "cache"
    with pytest.raises(
        JarError, match=r"org\.a\.two-2\.0\.jar does not match its pinned checksum"
    ) as e:
        fetch(lock, cache=cache)
    assert e.value.got == sha256(b"something else")
    assert e.value.remedy is not None
    assert [path.name for path in cache.iterdir()] == [".lock"]


def test_what_a_killed_fetch_left_is_cleared_away(
    lock: Path, tmp_path: Path, registry: Callable[..., list[list[str]]]
) -> None:
    left = tmp_path / "cache" / ".fetch-old"
    left.mkdir(parents=True)
    (left / "org.a.one-1.0.jar").write_bytes(b"half of it")
    registry()
    fetch(lock, cache=tmp_path / "cache")
    assert not left.exists()


def test_the_cache_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HEADGATE_JAR_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert jar_cache() == tmp_path / "xdg" / "headgate" / "jars"
    monkeypatch.setenv("HEADGATE_JAR_CACHE", str(tmp_path / "mine"))
    assert jar_cache() == tmp_path / "mine"


def test_a_cache_that_cannot_be_written_is_told(
    lock: Path, tmp_path: Path, registry: Callable[..., list[list[str]]]
) -> None:
    registry()
    (tmp_path / "file").write_text("")
    with pytest.raises(JarError, match=r"cannot keep jars in .*set HEADGATE_JAR_CACHE to one that"):
        fetch(lock, cache=tmp_path / "file" / "cache")


def test_two_processes_fetch_at_once_and_both_get_the_jars(lock: Path, tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from headgate.jvm import jars
def retrieve(wanted, aside, name, progress):
    with open({str(tmp_path / "asked")!r}, "a") as asked:
        asked.write("asked\\n")
    time.sleep(1)
    for jar in wanted:
        (aside / jar.file_name).write_bytes(f"the jar {{jar.file_name}}".encode())
jars._retrieve = retrieve
print(len(jars.fetch(Path({str(lock)!r}), cache=Path({str(tmp_path / "cache")!r}))))
"""
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate(timeout=60)[0] for process in running] == ["3\n", "3\n"]
    assert (tmp_path / "asked").read_text() == "asked\n", "one fetched, the other waited"


def test_without_a_network_one_sentence_says_what_to_do(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ivy itself, behind a proxy that is not there
    proxy = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1 -Dhttp.proxyHost=127.0.0.1"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{proxy} -Dhttp.proxyPort=1")
    with pytest.raises(JarError) as raised:
        fetch(lock, cache=tmp_path / "cache")
    told = str(raised.value)
    assert told.startswith("the jars of things-1.0 could not be fetched (the registry or the proxy")
    assert "check the network and try again" in told
    assert "\n" not in told
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("x: not found\n(javax.net.ssl.SSLHandshakeException: PKIX", "does not trust"),
        ("x: not found\n(java.net.UnknownHostException: x)", "is this machine offline?"),
        (
            "x: not found\n(java.net.SocketTimeoutException: Connect timed out)",
            "not answer in time",
        ),
        ("org.a#one;1.0: not found", "does not have all of them"),
        ("first\n\t::::::\nsomething new\n", "something new"),
        ("", "Ivy said nothing"),
    ],
)
def test_the_reason_of_a_failure_is_found_in_what_ivy_says(said: str, reason: str) -> None:
    assert reason in subject._reason(said)


def test_no_registry_is_named_in_the_code() -> None:
    rooms = [ROOT / "src" / "headgate" / room for room in ("brokers", "jvm")]
    for path in (path for room in rooms for path in room.rglob("*")):
        if path.suffix in (".py", ".lock"):
            text = path.read_text().replace("http://ant.apache.org/ivy/maven", "")  # a namespace
            for own in ("PLAINTEXT://", "CONTROLLER://", "pulsar://", "http://{HOST}", "s3://data"):
                text = text.replace(own, "")
            assert "://" not in text.replace("http://127.0.0.1", ""), path


@pytest.mark.parametrize("count", [1, 30, 31, 500])
def test_a_long_list_is_shared_and_the_files_of_a_module_stay_together(count: int) -> None:
    jars = [
        subject.Jar("org.a", f"part{n // 2}", "1.0", "linux" if n % 2 else "", f"{n:064x}")
        for n in range(count)
    ]
    shares = subject._shares(jars)
    assert len(shares) == min(4, -(-count // 30))
    assert sorted(jar.sha256 for share in shares for jar in share) == [j.sha256 for j in jars]
    places = {(jar.artifact, number) for number, share in enumerate(shares) for jar in share}
    assert len(places) == len({jar.artifact for jar in jars})
