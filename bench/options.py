"""The options that benchmarks of several engines share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from bench.data import DEFAULT_ROOT

_HERE = Path(__file__).resolve().parent


def add_engines_and_folders(parser: argparse.ArgumentParser, engines: Iterable[str]) -> None:
    """Which engines run, and where data, their output and the results go."""
    names = ",".join(engines)
    add = parser.add_argument
    add("--engines", default=names, help=f"some of {names}")
    add("--data", type=Path, default=DEFAULT_ROOT, help="where generated data is kept")
    add("--work", type=Path, default=_HERE / ".work", help="where engines write")
    add("--results", type=Path, default=_HERE / "results", help="where the results go")
    add("--keep", action="store_true", help="keep what the engines wrote")
