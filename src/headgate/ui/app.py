"""create_app: the pages, the REST interface and the gate in front of them, over one home."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from headgate.base.errors import HeadgateError
from headgate.home.layout import Home
from headgate.ui import pages
from headgate.ui.access import Access
from headgate.ui.actions import Actions
from headgate.ui.metrics import CONTENT_TYPE, metrics
from headgate.ui.model import Model
from headgate.ui.rest import acting, reading, state
from headgate.ui.rest.endpoint import Endpoint, error_response
from headgate.ui.rest.openapi import describe
from headgate.ui.security import Gate, problem
from headgate.ui.session import login, logout
from headgate.ui.spark_process import SparkProcess


def create_app(home: Home | str | None = None, *, access: Access | None = None) -> Starlette:
    """The web application of a home.

    >>> app = create_app("memory://create_app_doc")
    >>> app.state.model.jobs().jobs
    ()
    """
    model = Model(home if isinstance(home, Home) else Home(home))
    allowed = access or Access()
    spark = SparkProcess(model.home.url)
    actions = Actions(model, spark)
    served: list[Endpoint] = [
        *reading.endpoints(model),
        *state.endpoints(model, spark),
        *acting.endpoints(model, actions),
    ]
    app = Starlette(
        routes=[
            Route("/healthz", _health),
            Route("/metrics", _metrics(model)),
            Route("/openapi.json", _openapi(served)),
            Route("/login", login(allowed), methods=["POST"]),
            Route("/logout", logout, methods=["POST"]),
            *(endpoint.route() for endpoint in served),
            Mount("/static", StaticFiles(directory=str(files(pages) / "static"))),
            *_pages(model, allowed),
        ],
        middleware=[Middleware(Gate, access=allowed)],
        lifespan=_closing(actions, spark),
        exception_handlers={
            404: lambda request, error: problem(404, "NOT_FOUND", "there is no such page"),
            405: _wrong_method,
            HeadgateError: _told,
            Exception: _unexpected,
        },
    )
    app.state.model = model
    app.state.access = allowed
    app.state.actions = actions
    return app


def _closing(actions: Actions, spark: SparkProcess) -> Callable[[Starlette], Any]:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            actions.close()
            spark.close()

    return lifespan


def _pages(model: Model, access: Access) -> Sequence[BaseRoute]:
    return pages.routes(model, read_only=access.read_only)


async def _health(request: Request) -> Response:
    return PlainTextResponse("ok\n")


def _metrics(model: Model) -> Callable[[Request], Response]:
    def metrics_page(request: Request) -> Response:
        return Response(metrics(model), media_type=CONTENT_TYPE)

    return metrics_page


def _openapi(endpoints: Sequence[Endpoint]) -> Any:
    text = json.dumps(describe(endpoints))

    async def openapi(request: Request) -> Response:
        return Response(text, media_type="application/json")

    return openapi


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, HeadgateError)
    return error_response(error)


async def _wrong_method(request: Request, error: Exception) -> Response:
    answer = problem(405, "WRONG_METHOD", f"{request.method} does not work here")
    answer.headers.update(getattr(error, "headers", None) or {})
    return answer


async def _unexpected(request: Request, error: Exception) -> Response:
    return JSONResponse(
        {"errors": ["something unexpected happened; the server's log has more"],
         "code": "UNEXPECTED", "remedy": None},
        status_code=500,
    )  # fmt: skip
