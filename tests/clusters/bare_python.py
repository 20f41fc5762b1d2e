"""A Python that has pyarrow and pandas and nothing else: no headgate, no client, no pyspark."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

_NEEDED = ("pyarrow*", "pandas*", "numpy*", "dateutil", "python_dateutil*", "pytz*", "tzdata*",
           "six*")  # fmt: skip


def bare_python(folder: Path) -> Path:
    """Its executable; packages are links to those of this Python."""
    made = folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    (theirs,) = made.glob("lib/python*/site-packages")
    ours = Path(sysconfig.get_paths()["platlib"])
    for pattern in _NEEDED:
        for found in ours.glob(pattern):
            (theirs / found.name).symlink_to(found)
    python = made / "bin" / "python"
    known = subprocess.run([str(python), "-c", "import headgate"], capture_output=True, text=True)
    assert "No module named 'headgate'" in known.stderr, known
    return python
