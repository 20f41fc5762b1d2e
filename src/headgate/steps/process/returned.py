"""What handlers without a yield return: rows in a list or an iterator, or nothing, and no one row.

A text, a dictionary or a named tuple can be gone through as well, and would become rows of its
letters, names or fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import isgeneratorfunction
from types import GeneratorType
from typing import Any

from headgate.steps.process.codecs import TypeMistake
from headgate.steps.process.declare import Tagged

Handler = Callable[..., Any]
_MANY = (type(None), list, tuple, GeneratorType)


class NotRows(TypeMistake):
    """A handler returned what is not rows; `line` is where the handler is."""

    def __init__(self, handler: Handler, given: object) -> None:
        what = f"what {handler.__name__} returns"
        super().__init__(what, "rows, yielded or in a list", given)
        code = getattr(handler, "__code__", None)
        self.line = f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def many_only(handler: Handler) -> Handler:
    """The handler, refusing to return one row.

    >>> def on_word(word, ctx): return word
    >>> many_only(on_word)("abc", None)
    Traceback (most recent call last):
    headgate.steps.process.returned.NotRows: what on_word returns must be rows, yielded or \
in a list, got str 'abc'
    """
    if isgeneratorfunction(handler):
        return handler

    @wraps(handler)
    def checked(*arguments: Any) -> Any:
        given = handler(*arguments)
        if type(given) not in _MANY and _is_one(given):
            raise NotRows(handler, given)
        return given

    return checked


def _is_one(given: object) -> bool:
    # a tuple of a class of its own has named fields, as Spark's rows have
    one = isinstance(given, (str, bytes, bytearray, Mapping, tuple, Tagged))
    return one or not isinstance(given, Iterable)
