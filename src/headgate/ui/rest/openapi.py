"""The OpenAPI description: FastAPI makes it from what is served; here is what it cannot know."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from headgate.ui.rest.errors import Problem

DESCRIPTION = (
    "Jobs of a home: what they do, their checkpoints, and how to act on them. "
    "Names from Flink keep Flink's form: times in milliseconds since 1970."
)
READING: dict[int | str, dict[str, Any]] = {
    code: {"description": text, "model": Problem}
    for code, text in {
        400: "A parameter is wrong.",
        401: "The token is missing or wrong.",
        403: "A foreign origin, or a reader that tries to act.",
        404: "Not found.",
        409: "Refused, and why.",
        500: "A file of the home is damaged or cannot be read.",
    }.items()
}
"""Errors of every endpoint."""
ACTING: dict[int | str, dict[str, Any]] = {
    **READING,
    413: {"description": "The body is too large.", "model": Problem},
    415: {"description": "The body is not JSON.", "model": Problem},
}
"""Errors of those that take a body."""
# An empty body is taken for {}, but its content type must be there: it keeps forms out.
BODY = {"requestBody": {"required": True}}


def operation_id(route: APIRoute) -> str:
    """The method and the words of the path: get_jobs_job_plan."""
    (method,) = sorted(route.methods or {"GET"})
    words = [word.strip("{}").replace("-", "_") for word in route.path.split("/") if word]
    return "_".join([method.lower(), *words])


def describe(app: FastAPI) -> dict[str, Any]:
    """The whole description."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        for methods in found["paths"].values():
            for operation in methods.values():
                operation["responses"].pop("422", None)  # ours is 400, and 404 in the path
        schemas = found["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{}, {"token": []}]  # a server without tokens needs none
        app.openapi_schema = found
    return app.openapi_schema
