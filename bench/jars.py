"""Owns fetching pinned jars: a lock file in, checked files out.

A lock file has one jar a line, `group:artifact:version[:classifier] sha256`, and is complete:
nothing is resolved beyond it. The Ivy that ships with pyspark does the download, with settings
and a cache of its own, because a half-filled local Maven repository breaks its resolution.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from bench.java import java, pyspark_jars

_SETTINGS = """<ivysettings>
  <settings defaultResolver="central" defaultConflictManager="all"/>
  <resolvers>
    <ibiblio name="central" m2compatible="true"/>
  </resolvers>
</ivysettings>
"""


class JarError(RuntimeError):
    """A jar could not be fetched, or is not the one that the lock file names."""


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
    """The jars that a lock file names."""
    jars = []
    for number, line in enumerate(lockfile.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        words = text.split()
        parts = words[0].split(":")
        if len(words) != 2 or len(parts) not in (3, 4) or len(words[1]) != 64:
            raise JarError(
                f"{lockfile.name} line {number} is not `group:artifact:version[:classifier] "
                f"sha256`: {line!r}"
            )
        classifier = parts[3] if len(parts) == 4 else ""
        jars.append(Jar(parts[0], parts[1], parts[2], classifier, words[1]))
    return jars


def cache_dir() -> Path:
    """Where fetched jars are kept: `headgate` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "headgate"


def fetch(lockfile: Path, *, cache: Path | None = None) -> list[Path]:
    """The jars of a lock file, in its order, downloaded if need be and checked by sha256.

    >>> fetch(Path("bench/flink.lock"))[0].name  # doctest: +SKIP
    'at.yawk.lz4.lz4-java-1.10.3.jar'
    """
    root = cache or cache_dir()
    folder = root / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    jars = read_lock(lockfile)
    absent = [jar for jar in jars if not _is_there(folder / jar.file_name, jar)]
    if absent:
        print(f"fetching {len(absent)} of {len(jars)} jars of {lockfile.name}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=root, prefix="fetch-") as aside:
            _retrieve(absent, Path(aside), root / "ivy")
            for jar in absent:
                _check(Path(aside) / jar.file_name, jar)
            # Only what was checked gets its name in the cache, by one rename each.
            for jar in absent:
                (Path(aside) / jar.file_name).rename(folder / jar.file_name)
    return [folder / jar.file_name for jar in jars]


def _is_there(path: Path, jar: Jar) -> bool:
    return path.exists() and _sha256(path) == jar.sha256


def _check(path: Path, jar: Jar) -> None:
    if not path.exists():
        raise JarError(f"{jar.file_name} was not retrieved: is it still in the registry?")
    got = _sha256(path)
    if got != jar.sha256:
        raise JarError(
            f"{jar.file_name} is not the locked file (expected sha256 {jar.sha256}, got {got}): "
            "clear the jar cache and fetch again; if it stays, do not use the jar"
        )


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _retrieve(jars: list[Jar], aside: Path, ivy_cache: Path) -> None:
    settings, module = aside / "settings.xml", aside / "ivy.xml"
    settings.write_text(_SETTINGS, encoding="utf-8")
    module.write_text(_module(jars), encoding="utf-8")
    ivy = next(pyspark_jars().glob("ivy-*.jar"), None)
    if ivy is None:
        raise JarError("pyspark's jars folder has no Ivy: is this a full pyspark installation?")
    pattern = f"{aside}/[organisation].[artifact]-[revision](-[classifier]).[ext]"
    command = [java(), "-jar", str(ivy), "-warn", "-settings", str(settings)]
    command += ["-cache", str(ivy_cache), "-ivy", str(module), "-retrieve", pattern]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        tail = "\n".join((ran.stdout + ran.stderr).strip().splitlines()[-15:])
        raise JarError(f"the jars could not be fetched: check the network, then try again\n{tail}")


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
