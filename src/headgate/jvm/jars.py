"""Owns fetching pinned jars: a lock file in, checked files out.

A lock file has one jar a line, `group:artifact:version[:classifier] sha256`, and is complete:
nothing is resolved beyond it. The Ivy that ships with pyspark does the download, with settings
and a cache of its own, because a half-filled local Maven repository breaks its resolution.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from headgate.base.errors import HeadgateError
from headgate.base.locks import file_lock
from headgate.jvm.java import cache_folder, find_java
from headgate.jvm.spark_jars import find_spark_jars

VARIABLE = "HEADGATE_JAR_CACHE"

_POLL_SECONDS = 0.2
_SAY_SECONDS = 5.0
_ASIDE = ".fetch-"
_FEW = 30
"""So many jars are one Ivy's work."""
_MOST_AT_WORK = 4

# Without the poms, which a complete lock file does not need, a fetch takes half the time.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="central" defaultConflictManager="all"/>
  <timeout-constraints>
    <timeout-constraint name="patience" connectionTimeout="20000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="central" m2compatible="true" usepoms="false" timeoutConstraint="patience"/>
  </resolvers>
</ivysettings>
"""


class JarError(HeadgateError):
    """A jar could not be downloaded, or differs from the one that the lock file names.

    >>> lock = Path("jars.lock")
    >>> _ = lock.write_text("org.example:one:1.0 no-hash")
    >>> fetch(lock)
    Traceback (most recent call last):
    headgate.jvm.jars.JarError: line 1 of jars.lock does not name a jar (expected ...
    """

    code = "JARS"


@dataclass(frozen=True)
class Jar:
    """One line of a lock file."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The jar's name in the cache; with its group, since artifact names are not unique."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.group}.{self.artifact}-{self.version}{suffix}.jar"


def read_lock(lockfile: Path) -> list[Jar]:
    """The jars that a lock file names, in its order."""
    jars = []
    for number, line in enumerate(lockfile.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        words = text.split()
        parts = words[0].split(":")
        right = len(words) == 2 and len(parts) in (3, 4) and all(parts)
        if not right or not re.fullmatch("[0-9a-f]{64}", words[1]):
            raise JarError(
                f"line {number} of {lockfile.name} does not name a jar",
                expected="group:artifact:version[:classifier] sha256",
                got=repr(line),
                remedy="correct the line",
            )
        classifier = parts[3] if len(parts) == 4 else ""
        jars.append(Jar(parts[0], parts[1], parts[2], classifier, words[1]))
    return jars


def jar_cache() -> Path:
    """Where fetched jars are kept: HEADGATE_JAR_CACHE, else `headgate/jars` in the user's cache."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser().absolute() if named else cache_folder() / "jars"


def fetch(lockfile: Path, *, cache: Path | None = None, quiet: bool = False) -> list[Path]:
    """The jars of a lock file, in its order, downloaded if need be and checked by sha256.

    Several processes may do so at once: one fetches, the others wait for it. A jar gets its name
    in the cache only when it is complete and right, so one that was cut short does not count.

    >>> fetch(Path("bench/flink.lock"))[0].name  # doctest: +SKIP
    'at.yawk.lz4.lz4-java-1.10.3.jar'
    """
    folder = cache or jar_cache()
    jars = read_lock(lockfile)
    try:
        if _absent(jars, folder):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder, quiet):
                # whoever had the lock before us may have brought them
                if absent := _absent(jars, folder):
                    _bring(absent, folder, lockfile.stem, quiet)
    except OSError as error:
        raise JarError(
            f"cannot keep jars in {folder} ({error.strerror or error})",
            remedy=f"make that folder writable or set {VARIABLE} to one that is",
        ) from error
    return [folder / jar.file_name for jar in jars]


def _absent(jars: list[Jar], folder: Path) -> list[Jar]:
    """Jars that are not there, or damaged: those are fetched anew."""
    return [jar for jar in jars if _sha256(folder / jar.file_name) != jar.sha256]


def _sha256(path: Path) -> str | None:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _locked(folder: Path, quiet: bool) -> AbstractContextManager[None]:
    def waits() -> None:
        if not quiet:
            _say(f"waiting for another process that fetches jars into {folder}")

    return file_lock(folder / ".lock", on_wait=waits)


def _bring(jars: list[Jar], folder: Path, name: str, quiet: bool) -> None:
    for left in folder.glob(f"{_ASIDE}*"):  # of a process that was killed: we have the lock
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=_ASIDE) as made:
        aside = Path(made)
        with _Progress(name, folder, len(jars), quiet) as progress:
            _retrieve(jars, aside, name, progress)
        for jar in jars:
            _check(aside / jar.file_name, jar)
        for jar in jars:
            os.replace(aside / jar.file_name, folder / jar.file_name)


def _check(path: Path, jar: Jar) -> None:
    got = _sha256(path)
    if got is None:
        raise JarError(
            f"{jar.file_name} was not fetched",
            remedy="try again; if it happens again, the registry does not have it",
        )
    if got != jar.sha256:
        raise JarError(
            f"{jar.file_name} does not match its pinned checksum and was deleted",
            expected=f"sha256 {jar.sha256}",
            got=got,
            remedy="try again; if it happens again, do not trust the network or registry that "
            "gave it",
        )


def _retrieve(jars: list[Jar], aside: Path, name: str, progress: _Progress) -> None:
    """Let Ivy put the jars into a folder, under the names that they have in the cache.

    It asks for one after the other, so several of them share a long list.
    """
    (aside / "settings.xml").write_text(_SETTINGS, encoding="utf-8")
    spark = find_spark_jars(honour_spark_home=False).folder
    ivy = next(spark.glob("ivy-*.jar"), None)
    if ivy is None:
        raise JarError(f"there is no Ivy in {spark}", remedy="install pyspark again")
    command = [str(find_java().executable), "-jar", str(ivy)]
    at_work: list[tuple[subprocess.Popen[bytes], Path]] = []
    try:
        for number, some in enumerate(_shares(jars)):
            at_work.append(_start_ivy(command, some, aside, number))
        while any(process.poll() is None for process, _ in at_work):
            if any(process.poll() for process, _ in at_work):
                break
            progress.look(aside)
            time.sleep(_POLL_SECONDS)
    finally:
        for process, _ in at_work:
            if process.poll() is None:
                process.kill()
            process.wait()
    for process, log in at_work:
        if process.returncode > 0:
            reason = _reason(log.read_text(errors="replace"))
            raise JarError(
                f"the jars of {name} could not be fetched ({reason})",
                remedy="check the network and try again; without one, copy the folder "
                f"{aside.parent} from a machine that has the jars, or set {VARIABLE} to a copy",
            )


def _shares(jars: list[Jar]) -> list[list[Jar]]:
    """The jars of a long list in several; those of one module stay together."""
    count = min(_MOST_AT_WORK, -(-len(jars) // _FEW))
    shares: list[list[Jar]] = [[] for _ in range(count)]
    modules = {(jar.group, jar.artifact, jar.version): None for jar in jars}
    of = {module: number % count for number, module in enumerate(modules)}
    for jar in jars:
        shares[of[jar.group, jar.artifact, jar.version]].append(jar)
    return shares


def _start_ivy(
    command: list[str], jars: list[Jar], aside: Path, number: int
) -> tuple[subprocess.Popen[bytes], Path]:
    module, log = aside / f"module-{number}.xml", aside / f"ivy-{number}.log"
    module.write_text(_module(jars), encoding="utf-8")
    pattern = f"{aside}/[organisation].[artifact]-[revision](-[classifier]).[ext]"
    words = ["-warn", "-settings", str(aside / "settings.xml"), "-ivy", str(module)]
    words += ["-cache", str(aside / f"ivy-{number}"), "-retrieve", pattern]
    with open(log, "w") as out:
        started = subprocess.Popen(
            command + words, stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
    return started, log


def _reason(said: str) -> str:
    """Why Ivy failed, in a few words."""
    for sign, reason in (
        (
            "SSLHandshake",
            "Java does not trust the registry's certificate: on a network with one of "
            "its own, set JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=FILE",
        ),
        ("UnknownHostException", "the registry's name is not known: is this machine offline?"),
        ("ConnectException", "the registry or the proxy cannot be reached"),
        ("timed out", "the registry did not answer in time"),
        ("No space left", "the disk is full"),
        ("not found", "the registry does not have all of them"),
    ):
        if sign.lower() in said.lower():
            return reason
    lines = [line.strip() for line in said.splitlines() if line.strip(" \t:")]
    return lines[-1] if lines else "Ivy said nothing"


def _module(jars: list[Jar]) -> str:
    """An Ivy file that asks for exactly these jars and nothing they depend on."""
    lines = [
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
        '<info organisation="headgate" module="jars" revision="1"/>',
        '<configurations><conf name="default"/></configurations>',
        "<dependencies>",
    ]
    # Ivy keeps only the last of two elements for one module: its classifiers go into one.
    modules: dict[tuple[str, str, str], list[Jar]] = {}
    for jar in jars:
        modules.setdefault((jar.group, jar.artifact, jar.version), []).append(jar)
    for (group, artifact, version), members in modules.items():
        names = f"org={quoteattr(group)} name={quoteattr(artifact)}"
        lines.append(f'<dependency {names} rev={quoteattr(version)} transitive="false">')
        for jar in members:
            extra = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
            lines.append(f'<artifact name={quoteattr(artifact)} type="jar" ext="jar"{extra}/>')
        lines.append("</dependency>")
    lines += ["</dependencies>", "</ivy-module>"]
    return "\n".join(lines)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class _Progress:
    """How far a fetch is: a bar on a terminal, a line every few seconds elsewhere."""

    def __init__(self, name: str, folder: Path, total: int, quiet: bool) -> None:
        self._name = name
        self._folder = folder
        self._total = total
        self._quiet = quiet
        self._said = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> _Progress:
        if self._quiet:
            return self
        if not sys.stderr.isatty():
            _say(f"fetching {self._total} jars of {self._name} into {self._folder} (once)")
            return self
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True, no_color="NO_COLOR" in os.environ)
        columns = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
        self._bar = Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task(f"fetching {self._name}", total=2 * self._total)
        self._bar.start()
        return self

    def __exit__(self, *ended: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def look(self, aside: Path) -> None:
        """Count what is there: Ivy first looks for every jar, then brings them."""
        if self._quiet:
            return
        if self._bar is None and time.monotonic() - self._said < _SAY_SECONDS:
            return
        self._said = time.monotonic()
        found = sum(1 for _ in aside.glob("ivy-*/*/*/ivy-*.xml"))
        brought = sum(1 for _ in aside.glob("ivy-*/*/*/jars/*.jar"))
        text = f"{brought} of {self._total} jars of {self._name}"
        if self._bar is not None:
            done = min(found, self._total) + brought
            self._bar.update(self._task, completed=done, description=text)
        else:
            _say(text)
