"""PageRequest: a request for a page, with names in its path and query that are checked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.requests import Request

from headgate.base.errors import NotFoundError, UsageError
from headgate.ui.actions import Actions
from headgate.ui.model import Model
from headgate.ui.model.over_time import LATEST_MS
from headgate.ui.model.snapshot_names import SNAPSHOT_PATTERN

_LONGEST = 1000
_DIGITS = 9
_DIGITS_OF_BYTES = 15


@dataclass(frozen=True)
class PageRequest:
    """One request for a page, and the read model that serves it."""

    model: Model
    request: Request

    @property
    def actions(self) -> Actions:
        """Actions on jobs."""
        found: Actions = self.request.app.state.actions
        return found

    def name(self, part: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[part])

    def id(self, part: str) -> int:
        """A part of the path that is a number."""
        text = self.name(part)
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
            raise NotFoundError(f"there is no such {part}", remedy="check the address")
        return int(text)

    def text(self, name: str) -> str | None:
        """A value of the query; none if it is empty, as a form sends fields that are not filled."""
        found = self.request.query_params.get(name) or None
        if found is not None and (len(found) > _LONGEST or "\0" in found):
            raise UsageError(
                f"'{name}' must have at most {_LONGEST} characters and no zero byte",
                remedy="correct or remove it",
            )
        return found

    def snapshot(self, name: str) -> str | None:
        """A value of the query that names a snapshot of this home, never one elsewhere."""
        found = self.text(name)
        if found is not None and not re.fullmatch(SNAPSHOT_PATTERN, found):
            raise UsageError(
                f"'{name}' must be latest, ck:17, r1/ck:17 or sp:label",
                remedy="correct or remove it",
            )
        return found

    def time(self, name: str) -> int | None:
        """A value of the query that is a time, in milliseconds since 1970."""
        found = self.text(name)
        if found is None:
            return None
        if not (found.isascii() and found.isdigit() and int(found[:20]) <= LATEST_MS):
            raise UsageError(
                f"'{name}' must be milliseconds since 1970", remedy="correct or remove it"
            )
        return int(found)

    def number(self, name: str) -> int | None:
        """A value of the query that is a whole number."""
        return self._number(name, _DIGITS)

    def byte(self, name: str) -> int | None:
        """A value of the query that is a place in a file."""
        return self._number(name, _DIGITS_OF_BYTES)

    def _number(self, name: str, digits: int) -> int | None:
        found = self.text(name)
        if found is None:
            return None
        if not (found.isascii() and found.isdigit() and len(found) <= digits):
            raise UsageError(f"'{name}' must be a whole number", remedy="correct or remove it")
        return int(found)
