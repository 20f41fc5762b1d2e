"""Java's properties files, in which Spark's settings are kept."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SHORT = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# a name ends at the first separator that no backslash is before
_PAIR = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    r"""The settings of a file as java.util.Properties reads them.

    >>> parse_properties("# ours\nspark.master  local[2]\nspark.jars=a.jar,\\\n   b.jar\n")
    {'spark.master': 'local[2]', 'spark.jars': 'a.jar,b.jar'}
    """
    found = {}
    for line in _lines(text):
        match = _PAIR.fullmatch(line)
        assert match is not None  # every part may be empty
        found[_plain(match[1])] = _plain(match[2])
    return found


def _lines(text: str) -> list[str]:
    """Lines without comments; those that end with a backslash go on in the next one."""
    lines: list[str] = []
    open_line = False
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not open_line and (not line or line[0] in "#!"):
            continue
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        part = line[:-1] if goes_on else line
        if open_line:
            lines[-1] += part
        else:
            lines.append(part)
        open_line = goes_on
    return lines


def _plain(text: str) -> str:
    def of(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _SHORT.get(code, code)

    return _ESCAPE.sub(of, text)
