"""Endpoint: one path and method of the REST interface, with what it takes and gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headgate.base.errors import HeadgateError, NotFoundError, RefusedError, UsageError
from headgate.ui.model import View
from headgate.ui.security import TooLargeError, problem, read_json_object

_TEXT = 200
"""How long a text parameter may be, unless it says otherwise."""


@dataclass(frozen=True)
class Param:
    """A part of the path, of the query or of the body."""

    name: str
    description: str
    kind: Literal["string", "integer", "boolean"] = "string"
    pattern: str = r"[^\x00]+"
    least: int = 0
    most: int = 1_000_000_000
    default: Any = None
    required: bool = False
    many: bool = False
    """Whether it may be given more than once, and is a list."""

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its values."""
        found: dict[str, Any] = {"type": self.kind}
        if self.kind == "string":
            found |= {"minLength": 1, "maxLength": _TEXT, "pattern": f"^(?:{self.pattern})$"}
        if self.kind == "integer":
            found |= {"minimum": self.least, "maximum": self.most}
        return found | ({"default": self.default} if self.default is not None else {})

    def read(self, text: str) -> Any:
        """The value of a text in a path or query."""
        if self.kind == "integer":
            if not re.fullmatch(r"-?[0-9]{1,12}", text):
                raise self._wrong()
            return self.check(int(text))
        if self.kind == "boolean":
            if text not in ("true", "false"):
                raise self._wrong()
            return text == "true"
        return self.check(text)

    def check(self, value: Any) -> Any:
        """The value, if it is one that the schema allows."""
        if self.kind == "boolean":
            fits = isinstance(value, bool)
        elif self.kind == "integer":
            plain = isinstance(value, int) and not isinstance(value, bool)
            fits = plain and self.least <= value <= self.most
        else:
            fits = isinstance(value, str) and 1 <= len(value) <= _TEXT
            fits = fits and bool(re.fullmatch(self.pattern, value))
        if not fits:
            raise self._wrong()
        return value

    def _wrong(self) -> UsageError:
        wanted = {"integer": f"a whole number from {self.least} to {self.most}"}
        return UsageError(
            f"'{self.name}' is not right",
            expected=wanted.get(self.kind, self.kind),
            remedy=self.description,
        )


JOB = Param("job", "The name of a job, as in /jobs/overview.", required=True)


@dataclass(frozen=True)
class Endpoint:
    """What is behind a path; `answer` gets the values by name and gives a view."""

    path: str
    summary: str
    answer: Callable[..., View]
    gives: type[View]
    method: str = "GET"
    parts: Sequence[Param] = ()
    query: Sequence[Param] = ()
    body: Sequence[Param] = ()
    status: int = 200
    tag: str = "jobs"
    refuses: Mapping[int, str] = field(default_factory=dict)
    """More answers that are not an error of the caller's."""

    def route(self) -> Route:
        """The route that serves it."""
        return Route(self.path, self._serve, methods=[self.method])

    async def _serve(self, request: Request) -> Response:
        try:
            values = await self._values(request)
            view = await run_in_threadpool(self.answer, **values)
        except TooLargeError:
            return problem(413, "TOO_LARGE", "the body is too large", "send less")
        except HeadgateError as error:
            return error_response(error)
        return JSONResponse(view.to_json(), status_code=self.status)

    async def _values(self, request: Request) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for part in self.parts:
            try:
                values[part.name] = part.read(request.path_params[part.name])
            except UsageError:
                raise NotFoundError(f"there is no such {part.name}") from None
        values |= self._query(request)
        if self.method == "POST":
            values |= _body(self.body, await request.body())
            values["request"] = request
        return values

    def _query(self, request: Request) -> dict[str, Any]:
        known = {param.name: param for param in self.query}
        values = {param.name: param.default for param in self.query}
        seen: set[str] = set()
        for name, text in request.query_params.multi_items():
            if name not in known:
                raise UsageError(
                    f"there is no parameter '{name[:50]}'",
                    expected=", ".join(known) or "none",
                    remedy="correct or remove it",
                )
            if known[name].many:
                values[name] = [*(values[name] or []), known[name].read(text)]
                continue
            if name in seen:
                raise UsageError(f"'{name}' is given twice", remedy="give it once")
            seen.add(name)
            values[name] = known[name].read(text)
        for param in self.query:
            if param.required and values[param.name] is None:
                raise UsageError(f"'{param.name}' is missing", remedy=param.description)
        return values


def _body(params: Sequence[Param], text: bytes) -> dict[str, Any]:
    data = read_json_object(text)
    if data is None:
        raise UsageError("the body is not a JSON object", remedy="send one, for instance {}")
    known = {param.name: param for param in params}
    for name in data:
        if name not in known:
            raise UsageError(
                f"there is no field '{name[:50]}'",
                expected=", ".join(known) or "none",
                remedy="correct or remove it",
            )
    values = {param.name: param.default for param in params}
    values |= {name: known[name].check(value) for name, value in data.items()}
    for param in params:
        if param.required and values[param.name] is None:
            raise UsageError(f"'{param.name}' is missing", remedy=param.description)
    return values


def error_response(error: HeadgateError) -> Response:
    """An error as JSON: 404 for what is not there, 400 for what was asked wrongly, 409 refused."""
    status = 500
    if isinstance(error, NotFoundError):
        status = 404
    elif isinstance(error, UsageError):
        status = 400
    elif isinstance(error, RefusedError):
        status = 409
    said = error.message
    if error.expected is not None:
        said += f" (expected {error.expected})"
    return problem(status, error.code, said, error.remedy)
