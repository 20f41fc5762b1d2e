"""An error of a handler, told with the user's lines, the step, the input, the key and the row."""

from __future__ import annotations

import json
import sysconfig
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import Row

from headgate.process.codecs import shortened

_OURS = str(Path(__file__).resolve().parents[1])
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
MARK = "HEADGATE_HANDLER"


def user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The lines that an error went through, but ours and those of libraries, if there are any."""
    frames = list(traceback.extract_tb(error.__traceback__))
    mine = [
        f
        for f in frames
        if not f.filename.startswith((_OURS, *_LIBRARIES, "<")) and "/pyspark/" not in f.filename
    ]
    return mine or frames


def key_text(key: Any) -> str:
    """A key as people write it.

    >>> key_text(Row(order_id="o1"))
    "order_id='o1'"
    """
    names = getattr(key, "__fields__", None)
    if names and len(names) == len(key):
        return ", ".join(f"{n}={shortened(v, 80)}" for n, v in zip(names, key, strict=True))
    return shortened(key, 80)


def said(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join(traceback.format_exception_only(error)[-1].split())


class HandlerError(Exception):
    """A handler raised; the user's own frames come first."""

    def __init__(
        self,
        step: str,
        handler: str,
        key: Row | None,
        row: Any,
        error: BaseException,
        about: str | None = None,
    ) -> None:
        self._about = about or _about(key, row)
        self.step, self.handler, self.key, self.row, self.error = step, handler, key, row, error
        self.frames = [f"{f.filename}:{f.lineno}" for f in user_frames(error)]
        super().__init__(self._text())

    def _text(self) -> str:
        place = f" at {self.frames[-1]}" if self.frames else ""
        name = f"step '{self.step}': " if self.step else ""
        return f"{name}on_{self.handler} failed{place} with {said(self.error)}, {self._about}"

    def for_jvm(self) -> str:
        """All of it in a line that is found again in what Spark says of a failure."""
        told = {
            "step": self.step,
            "text": self._text().removeprefix(f"step '{self.step}': "),
            "error": said(self.error),
            "frames": self.frames[:20],
        }
        return f"{MARK} {json.dumps(told)}"


def _about(key: Row | None, row: Any) -> str:
    more = f" and the row {shortened(row)}" if row is not None else ""
    return f"for the key {key_text(key)}{more}"


def error_row(handler: str, key: Row, row: Any, error: BaseException) -> dict[str, Any]:
    """A failure as a row of the side output `errors`."""
    frames = user_frames(error)
    return {
        "handler": f"on_{handler}",
        "key": key_text(key),
        "row": None if row is None else shortened(row, 10_000),
        "error": said(error),
        "location": f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None,
    }
