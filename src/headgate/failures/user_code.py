"""An error of the user's own code: the lines that are theirs, and the text that travels."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path

from headgate.base.coded import coded_line

_OURS = str(Path(__file__).resolve().parents[1])
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
# code that calls sys.exit would end Python's worker without a word of where it was
FAILURES = (Exception, SystemExit)
_MOST_FRAMES = 20


def user_frames(error: BaseException) -> list[str]:
    """The lines that an error went through, but ours and those of libraries."""
    return [
        f"{f.filename}:{f.lineno}"
        for f in traceback.extract_tb(error.__traceback__)
        if not f.filename.startswith((_OURS, *_LIBRARIES, "<")) and "/pyspark/" not in f.filename
    ]


def all_frames(error: BaseException) -> list[str]:
    """Every line that an error went through."""
    return [f"{f.filename}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]


def said(error: BaseException) -> str:
    """What an error says, in one line.

    >>> said(ValueError("too\\nlong"))
    'ValueError: too long'
    """
    return " ".join(traceback.format_exception_only(error)[-1].split())


def line_of(step: str, text: str, error: BaseException, frames: Sequence[str]) -> str:
    """All of it in a line that is found again in what Spark says of a failure.

    >>> line_of("out", "no", OSError(), [])
    'HEADGATE {"code": "HANDLER", "step": "out", "text": "no", "error": "OSError", "frames": []}'
    """
    found = {
        "step": step,
        "text": text,
        "error": said(error),
        "frames": list(frames[:_MOST_FRAMES]),
    }
    return coded_line("HANDLER", found)
