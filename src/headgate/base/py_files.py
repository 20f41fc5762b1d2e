"""Files and archives of Python code that a job brings along: found by the driver's imports, too."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from headgate.base.errors import NotFoundError


def put_on_path(names: Iterable[str]) -> None:
    """Let imports find what is in these files, as those of a worker will.

    A module is copied to a folder of its own first: its neighbours are not meant.
    """
    for name in names:
        if "://" in name and not name.startswith("file://"):
            continue  # Spark fetches it, when it starts
        path = Path(name.removeprefix("file://")).expanduser()
        if not path.exists():
            raise NotFoundError(
                f"there is no file {name}", remedy="check --py-files, or py_files in headgate.toml"
            )
        if path.suffix == ".py":
            path = _folder_with(path)
        elif (path / "__init__.py").is_file():
            path = path.parent  # a package is imported from the folder that it is in
        sys.path.insert(1, str(path.resolve()))


def _folder_with(module: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="headgate-py-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copy(module, folder / module.name)
    return folder
