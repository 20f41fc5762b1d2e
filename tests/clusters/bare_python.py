"""A Python that has pyarrow and pandas and nothing else: no headgate, no client, no pyspark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow

_NEEDED = ("pyarrow*", "pandas*", "numpy*", "dateutil", "python_dateutil*", "pytz*", "tzdata*",
           "six*")  # fmt: skip


def _same(file: str | Path, to: str | Path) -> None:
    try:
        os.link(file, to)
    except OSError:  # on another disk
        shutil.copy(file, to)


def bare_python(folder: Path, *, copied: bool = False) -> Path:
    """Its executable; packages are links to those of this Python, or copies."""
    made = folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    (theirs,) = made.glob("lib/python*/site-packages")
    ours = Path(pyarrow.__file__).parents[1]
    for pattern in _NEEDED:
        for found in ours.glob(pattern):
            if copied and found.is_dir():
                shutil.copytree(found, theirs / found.name, copy_function=_same)
            elif copied:
                _same(found, theirs / found.name)
            else:
                (theirs / found.name).symlink_to(found)
    python = made / "bin" / "python"
    known = subprocess.run([str(python), "-c", "import headgate"], capture_output=True, text=True)
    assert "No module named 'headgate'" in known.stderr, known
    return python
