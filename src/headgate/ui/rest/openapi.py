"""The OpenAPI description, made from the endpoints that are served: the two cannot differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.runtime.options import versions
from headgate.ui.model.view import View, schema_of
from headgate.ui.rest.endpoint import Endpoint, Param


@dataclass(frozen=True)
class Problem(View):
    """What was wrong, and what to do."""

    errors: tuple[str, ...]
    code: str
    remedy: str | None


_ERRORS = {
    "400": "A parameter is wrong.",
    "401": "The token is missing or wrong.",
    "403": "A foreign origin, or a reader who wants to act.",
    "404": "There is no such thing.",
    "409": "Refused, and why.",
    "500": "A file of the home is damaged or cannot be read.",
}
_WRITING = {"413": "The body is too large.", "415": "The body is not JSON."}


def describe(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The whole description."""
    schemas: dict[str, Any] = {}
    problem = {"application/json": {"schema": schema_of(Problem, schemas)}}
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(_path(endpoint), {})[endpoint.method.lower()] = _operation(
            endpoint, schemas, problem
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headgate",
            "version": versions()["headgate"],
            "description": "Jobs of a home: what they do, their checkpoints, and what can be "
            "asked of them. Names from Flink keep Flink's form: times in milliseconds since 1970.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _path(endpoint: Endpoint) -> str:
    return endpoint.path.replace(":path}", "}")


def _operation(
    endpoint: Endpoint, schemas: dict[str, Any], problem: dict[str, Any]
) -> dict[str, Any]:
    errors = _ERRORS | (_WRITING if endpoint.method == "POST" else {})
    answer = {"application/json": {"schema": schema_of(endpoint.gives, schemas)}}
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": _id(endpoint),
        "tags": [endpoint.tag],
        "parameters": [
            *(_parameter(part, "path") for part in endpoint.parts),
            *(_parameter(param, "query") for param in endpoint.query),
        ],
        "responses": {
            str(endpoint.status): {"description": "As asked for.", "content": answer},
            **{code: {"description": text, "content": problem} for code, text in errors.items()},
        },
    }
    if endpoint.method == "POST":
        found["requestBody"] = {
            "required": True,  # an empty object at least: its content type keeps forms out
            "content": {"application/json": {"schema": _body(endpoint.body)}},
        }
    return found


def _id(endpoint: Endpoint) -> str:
    words = [word for word in endpoint.path.replace(":path", "").split("/") if word]
    plain = [word.strip("{}").replace("-", "_") for word in words]
    return "_".join([endpoint.method.lower(), *plain])


def _parameter(param: Param, place: str) -> dict[str, Any]:
    return {
        "name": param.name,
        "in": place,
        "required": place == "path" or param.required,
        "description": param.description,
        "schema": {"type": "array", "items": param.schema()} if param.many else param.schema(),
    }


def _body(params: Sequence[Param]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            param.name: {**param.schema(), "description": param.description} for param in params
        },
        "required": [param.name for param in params if param.required],
        "additionalProperties": False,
    }
