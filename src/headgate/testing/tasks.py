"""A process function in a driver as in a job: each batch is a task, with attributes of its own."""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headgate.steps.process.function import Process

_COLLECTIONS = (list, dict, set, bytearray, deque, Counter, OrderedDict, defaultdict)


class Tasks:
    """Gives a function the attributes that it came with, for each batch anew.

    In a job a function travels to each task, and what it keeps in attributes of its own is gone
    with the task. Collections are copied as well; other objects, like stand-ins for a service that
    a test looks at afterwards, stay the same.
    """

    def __init__(self, function: Process) -> None:
        self.function = copy.copy(function)
        self._given = dict(function.__dict__)
        self._kept: set[str] = set()

    def keep(self) -> None:
        """Leave the states and timers that are there now where they are."""
        self._kept = set(self.function.__dict__) - set(self._given)

    @contextmanager
    def task(self) -> Iterator[None]:
        """Open the function for a batch, and close it."""
        own = self.function.__dict__
        for name in set(own) - self._kept:
            del own[name]
        own.update({name: _copied(value) for name, value in self._given.items()})
        self.function.open()
        try:
            yield
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                self.function.close()
            raise
        self.function.close()


def _copied(value: Any) -> Any:
    if type(value) in _COLLECTIONS:
        with suppress(Exception):  # something in it cannot be copied, and would not travel either
            return copy.deepcopy(value)
    return value
