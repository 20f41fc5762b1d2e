"""Errors as REST gives them: Flink's `errors`, with a code and a remedy of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from headgate.base.errors import HeadgateError, NotFoundError, RefusedError, UsageError
from headgate.base.secrets import redact
from headgate.ui.security import problem

_SHOWN = 50
_MESSAGES = {
    404: ("NOT_FOUND", "there is no such page", None),
    413: ("TOO_LARGE", "the body is too large", "send less"),
}
_BEGINNINGS = ("Input should ", "String should ", "Value error, must ")


class Problem(BaseModel):
    """What was wrong, and what to do."""

    model_config = ConfigDict(extra="forbid")

    errors: list[str]
    code: str
    remedy: str | None


async def headgate_error(request: Request, error: Exception) -> Response:
    """404 for what is not there, 400 for a wrong request, 409 refused, 500 for a damaged home."""
    assert isinstance(error, HeadgateError)
    status = 500
    if isinstance(error, NotFoundError):
        status = 404
    elif isinstance(error, UsageError):
        status = 400
    elif isinstance(error, RefusedError):
        status = 409
    text = error.message
    if error.expected is not None:
        text += f" (expected {error.expected})"
    return problem(status, error.code, text, error.remedy)


async def http_error(request: Request, error: Exception) -> Response:
    """What the router and the reader of bodies refuse."""
    assert isinstance(error, HTTPException)
    status = error.status_code
    if status == 405:
        answer = problem(405, "WRONG_METHOD", f"{request.method} is not allowed here")
    elif status in _MESSAGES:
        answer = problem(status, *_MESSAGES[status])
    elif status == 400:  # FastAPI's, for a body nested so deeply that Python's parser gives up
        answer = _not_an_object()
    else:
        answer = problem(status, "HTTP_ERROR", str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


async def invalid_request(request: Request, error: Exception) -> Response:
    """A parameter or a field that is not as described: 404 in the path, else 400."""
    assert isinstance(error, RequestValidationError)
    found: Sequence[Mapping[str, Any]] = error.errors()
    for one in found:
        if one["loc"][0] == "path":
            return problem(404, NotFoundError.code, f"there is no such {one['loc'][1]}")
    first = found[0]
    if first["type"] == "json_invalid" or len(first["loc"]) == 1:
        return _not_an_object()
    where, name = str(first["loc"][0]), str(first["loc"][1])
    fields = _descriptions(request, where)
    if first["type"] == "extra_forbidden":
        text = f"there is no field '{name[:_SHOWN]}' (expected {', '.join(fields)})"
        return problem(400, UsageError.code, text, "correct or remove it")
    return problem(400, UsageError.code, _sentence(name, first), fields.get(name))


async def unexpected(request: Request, error: Exception) -> Response:
    """An error of ours; the log has it."""
    return JSONResponse(
        {"errors": ["something unexpected happened; the server's log has more"],
         "code": "UNEXPECTED", "remedy": None},
        status_code=500,
    )  # fmt: skip


def _not_an_object() -> Response:
    return problem(
        400, UsageError.code, "the body must be a JSON object", "send one, for instance {}"
    )


def _sentence(name: str, error: Mapping[str, Any]) -> str:
    """What must hold, and what came.

    >>> _sentence("limit", {"type": "x", "msg": "Input should be less than 9", "input": "12"})
    "limit must be less than 9, got '12'"
    """
    if error["type"] == "missing":
        return f"'{name}' is missing"
    text = str(error["msg"])
    if error["type"] == "string_pattern_mismatch":
        text = f"must match {error['ctx']['pattern'].removeprefix('^(?:').removesuffix(')$')}"
    for beginning in _BEGINNINGS:
        if text.startswith(beginning):
            text = f"must {text.removeprefix(beginning)}"
    return f"{name} {text}, got {redact(repr(error['input']))[:_SHOWN]}"


def _descriptions(request: Request, where: str) -> dict[str, str | None]:
    """The names that an endpoint knows in its query or body, with their descriptions."""
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    if where == "query":
        return {f.alias: f.field_info.description for f in route.dependant.query_params}
    assert route.body_field is not None
    body = route.body_field.field_info.annotation
    assert isinstance(body, type) and issubclass(body, BaseModel)
    return {name: field.description for name, field in body.model_fields.items()}
