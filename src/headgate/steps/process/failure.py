"""An error of a handler, with the user's lines, the step, the input, the key and the row."""

from __future__ import annotations

from types import GeneratorType
from typing import Any

from pyspark.sql import Row

from headgate.failures.user_code import FAILURES, all_frames, line_of, said, user_frames
from headgate.steps.process.codecs import shortened
from headgate.steps.process.returned import NotRows

__all__ = ["FAILURES", "HandlerError", "error_row", "key_text", "said", "user_lines"]


def user_lines(error: BaseException, given: Any = None) -> list[str]:
    """The lines that an error went through, but ours and those of libraries, if there are any.

    An error about what a handler gave went through none of the handler's: there it is where the
    generator `given` waits, or where the handler begins that gave no rows.
    """
    mine = user_frames(error)
    if not mine and isinstance(error, NotRows):
        return [error.line]
    if not mine and (waiting := _waiting(given)):
        return waiting
    return mine or all_frames(error)


def _waiting(given: Any) -> list[str]:
    """Where a generator, and those that it hands on, have yielded."""
    found: list[str] = []
    while isinstance(given, GeneratorType) and given.gi_frame is not None:
        found.append(f"{given.gi_frame.f_code.co_filename}:{given.gi_frame.f_lineno}")
        given = given.gi_yieldfrom
    return found


def key_text(key: Any) -> str:
    """A key as people write it.

    >>> key_text(Row(order_id="o1"))
    "order_id='o1'"
    """
    names = getattr(key, "__fields__", None)
    if names and len(names) == len(key):
        return ", ".join(f"{n}={shortened(v, 80)}" for n, v in zip(names, key, strict=True))
    return shortened(key, 80)


class HandlerError(Exception):
    """A handler, or `open`, raised; the user's own frames come first."""

    def __init__(
        self,
        step: str,
        handler: str,
        key: Row | None,
        row: Any,
        error: BaseException,
        about: str | None = None,
        given: Any = None,
    ) -> None:
        self._about = about or _about(key, row)
        self.step, self.handler, self.key, self.row, self.error = step, handler, key, row, error
        self.frames = user_lines(error, given)
        super().__init__(self._text())

    def _text(self) -> str:
        place = f" at {self.frames[-1]}" if self.frames else ""
        name = f"step '{self.step}': " if self.step else ""
        return f"{name}{self.handler} failed{place} with {said(self.error)}, {self._about}"

    def for_jvm(self) -> str:
        """All of it in a line that is found again in what Spark says of a failure."""
        text = self._text().removeprefix(f"step '{self.step}': ")
        return line_of(self.step, text, self.error, self.frames)


def _about(key: Row | None, row: Any) -> str:
    more = f" and the row {shortened(row)}" if row is not None else ""
    return f"for the key {key_text(key)}{more}"


def error_row(
    handler: str, key: Row, row: Any, error: BaseException, given: Any = None
) -> dict[str, Any]:
    """A failure as a row of the side output `errors`."""
    lines = user_lines(error, given)
    return {
        "handler": f"on_{handler}",
        "key": key_text(key),
        "row": None if row is None else shortened(row, 10_000),
        "error": said(error),
        "location": lines[-1] if lines else None,
    }
