"""What the job's own Python code raised: the end of a traceback, and the user's own frames."""

from __future__ import annotations

import builtins
import re

from headgate.failures.reasons import Failure, Reason

_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\n(?P<body>(?:.*\n)*?)(?P<last>\S.*)", re.M
)
# Errors of files and networks: Python's own, and those of libraries, which are named like them.
_PYTHON_IO = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, OSError)
}
_LIBRARY_IO = ("ConnectionError", "Timeout", "TimeoutError", "URLError", "gaierror")


def has_traceback(text: str) -> bool:
    """Whether a text holds a traceback of Python."""
    return _TRACEBACK.search(text) is not None


def python_failure(text: str) -> Failure | None:
    """The failure that a traceback is about, if there is one in the text."""
    found = _TRACEBACK.search(text)
    if found is None:
        return None
    last = found["last"].strip()
    lines = [line.strip() for line in found["body"].splitlines() if 'File "' in line]
    own = [f for f in lines if "/pyspark/" not in f and "/headgate/" not in f]
    places = [
        line.removeprefix("File ").split(", in ")[0].replace('"', "").replace(", line ", ":")
        for line in own or lines
    ]
    where = f" at {places[-1]}" if places else ""
    return Failure(python_reason(last), f"{last}{where}", frames=tuple(places) if own else ())


def python_reason(last: str) -> Reason:
    """Whether it is worth while to try again, by the last line of a traceback.

    >>> python_reason("requests.exceptions.ReadTimeout: 3 s").name
    'USER_CODE_IO'
    """
    kind = last.partition(":")[0].rpartition(".")[2]
    network = kind in _PYTHON_IO or kind.endswith(_LIBRARY_IO)
    return Reason.USER_CODE_IO if network else Reason.USER_CODE
