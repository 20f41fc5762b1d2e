"""Build what a release is made of: `python -m tools.release [--tag v0.1.0] [--to dist]`.

1. The sources are those of the tag, in a clone of their own; without a tag, this working tree.
2. The tag must be the version of pyproject.toml, and CHANGELOG.md must have a heading for it.
3. The sdist is built, unpacked, and the wheel is built from it: so it is complete.
4. SHA256SUMS lists both.

A kernel that is compiled already is taken along. Its stamp names its sources, and the build
compiles it anew unless they are these.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_JAR = Path("src/headgate/jars/headgate-kernel.jar")


class ReleaseError(Exception):
    """Why nothing was built."""


def build(source: Path, target: Path, *, tag: str | None = None) -> list[Path]:
    """The sdist and the wheel of a project's sources, written into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        if tag is not None:
            source = _checkout(source, tag, Path(scratch) / "tag")
            _check_version(source, tag)
        made = Path(scratch) / "made"
        _hatchling(source, "sdist", made)
        (sdist,) = made.glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch, filter="data")
        unpacked = Path(scratch) / sdist.name.removesuffix(".tar.gz")
        if (ROOT / _JAR).is_file():
            (unpacked / _JAR).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / _JAR, unpacked / _JAR)
        _hatchling(unpacked, "wheel", made)
        (wheel,) = made.glob("*.whl")
        target.mkdir(parents=True, exist_ok=True)
        files = [Path(shutil.copy(file, target)) for file in (sdist, wheel)]
    _write_sums(files, target)
    return files


def _checkout(source: Path, tag: str, target: Path) -> Path:
    known = _git("tag", "--list", tag, cwd=source).split()
    if tag not in known:
        raise ReleaseError(f"there is no tag {tag}: make it with `git tag {tag}`")
    _git(
        "clone",
        "--quiet",
        "--depth",
        "1",
        "--branch",
        tag,
        source.as_uri(),
        str(target),
        cwd=source,
    )
    return target


def _check_version(source: Path, tag: str) -> None:
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    if tag != f"v{version}":
        raise ReleaseError(
            f"the tag must be v{version}, the version in pyproject.toml, got {tag}: "
            "correct one of them"
        )
    changes = (source / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE):
        raise ReleaseError(
            f"CHANGELOG.md must have the heading '## {version} (YYYY-MM-DD)': "
            "write the day of the release there"
        )


def _hatchling(source: Path, kind: str, target: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    ran = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise ReleaseError(f"the {kind} could not be built:\n{ran.stdout}{ran.stderr}")


def _git(*words: str, cwd: Path) -> str:
    ran = subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise ReleaseError(f"git {words[0]}: {ran.stderr.strip()}")
    return ran.stdout


def _write_sums(files: list[Path], target: Path) -> None:
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (target / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def main() -> int:
    """Build, and say what was built."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--tag", help="the tag to build; without it, the working tree")
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="the folder; dist")
    given = parser.parse_args()
    try:
        files = build(ROOT, given.to, tag=given.tag)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for file in files:
        print(f"release: {file} ({file.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
