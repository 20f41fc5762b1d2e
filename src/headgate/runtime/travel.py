"""The Python code that goes to executors: this package, and the job's own modules."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import headgate
from headgate.base.errors import NotFoundError, UsageError
from headgate.runtime.home_probe import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_FILES = 2_000
_MOST_BYTES = 20_000_000
# the same archive is the same bytes, so that its name can be made of them
_TIME = (1980, 1, 1, 0, 0, 0)
_NOT_OURS = ("site-packages", "dist-packages", "node_modules", "__pycache__")


def send_code(spark: SparkSession, modules: Sequence[Path], say: Callable[[str], None]) -> None:
    """Bring this package and the job's modules to the Python of all executors, now and later.

    A local master's workers have the driver's own files.
    """
    if is_local(str(spark.sparkContext.master)):
        return
    package = Path(headgate.__file__).parent
    ours = pack("headgate", [(f, f"headgate/{n}") for f, n in python_files(package)])
    for archive in (ours, *archives_of(modules, say)):
        spark.sparkContext.addPyFile(str(archive))


def archives_of(modules: Iterable[Path], say: Callable[[str], None]) -> list[Path]:
    """Modules, folders of them and archives as archives alone."""
    archives: list[Path] = []
    own: list[tuple[Path, str]] = []
    for given in modules:
        if given.suffix in (".zip", ".egg", ".whl"):
            archives.append(given)
        elif (given / "__init__.py").is_file():
            own += [(file, f"{given.name}/{name}") for file, name in python_files(given)]
        elif given.is_dir():
            own += importable(given)
        elif given.suffix == ".py":
            own.append((given, given.name))
        else:
            raise UsageError(
                "py_files must be modules, packages, folders of them, or archives",
                got=str(given),
                remedy="name .py files, folders, .zip, .egg or .whl files",
            )
    size = sum(file.stat().st_size for file, _ in own)
    if size > _MOST_BYTES or len(own) > _MOST_FILES:
        say(
            f"warning: executors do not get the modules beside the job: they are {len(own):,} "
            f"files of {size / 1e6:,.0f} MB; name those that it needs in headgate.toml (py_files)"
        )
    elif own:
        archives.append(pack("job", own))
    return archives


def importable(folder: Path) -> list[tuple[Path, str]]:
    """The modules and packages that a folder on Python's path has, with their names in it."""
    found = [(file, file.name) for file in sorted(folder.glob("*.py"))]
    for below in sorted(folder.iterdir()):
        if (below / "__init__.py").is_file() and _is_code(below):
            found += [(file, f"{below.name}/{name}") for file, name in python_files(below)]
    return found


def python_files(package: Path) -> Iterator[tuple[Path, str]]:
    """The modules of a package, with their paths in it."""
    for file in sorted(package.rglob("*.py")):
        inside = file.relative_to(package)
        if all(_is_code(Path(part)) for part in inside.parts):
            yield file, inside.as_posix()


def pack(name: str, files: Iterable[tuple[Path, str]]) -> Path:
    """An archive of these files, made once for the same content."""
    contents = []
    digest = hashlib.sha256()
    for file, inside in files:
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            raise NotFoundError(f"there is no file {file}", remedy="check py_files") from None
        contents.append((inside, content))
        digest.update(f"{inside}\0{len(content)}\0".encode() + content)
    folder = Path(tempfile.mkdtemp(prefix="headgate-code-"))
    made = folder / f"{name}-{digest.hexdigest()[:12]}.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, content in contents:
            archive.writestr(zipfile.ZipInfo(inside, _TIME), content, zipfile.ZIP_DEFLATED)
    return made


def _is_code(path: Path) -> bool:
    return not path.name.startswith(".") and path.name not in _NOT_OURS
