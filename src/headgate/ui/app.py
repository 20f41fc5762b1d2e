"""create_app: the pages, the REST interface and the gate in front of them, over one home."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from headgate.base.errors import HeadgateError
from headgate.home.layout import Home
from headgate.runtime.health import HomeCheck
from headgate.runtime.options import versions
from headgate.ui import pages
from headgate.ui.access import Access
from headgate.ui.actions import Actions
from headgate.ui.metrics import metrics_page
from headgate.ui.model import Model
from headgate.ui.rest import acting, errors, logs, reading, state
from headgate.ui.rest.openapi import DESCRIPTION, describe, operation_id
from headgate.ui.security import Gate
from headgate.ui.session import login, logout
from headgate.ui.spark_process import SparkProcess


def create_app(
    home: Home | str | None = None,
    *,
    access: Access | None = None,
    conf: Mapping[str, str] | None = None,
) -> FastAPI:
    """The web application of a home; `conf` is for the Spark that reads state.

    >>> app = create_app("memory://create_app_doc")
    >>> app.state.model.jobs().jobs
    ()
    """
    model = Model(home if isinstance(home, Home) else Home(home))
    allowed = access or Access()
    spark = SparkProcess(model.home.url, conf or {})
    actions = Actions(model, spark)
    app = FastAPI(
        title="Headgate",
        version=versions()["headgate"],
        description=DESCRIPTION,
        docs_url=None,  # those pages load scripts from elsewhere, which our policy forbids
        redoc_url=None,
        generate_unique_id_function=operation_id,
        routes=_routes(model, allowed),
        middleware=[Middleware(Gate, access=allowed)],
        lifespan=_closing(actions, spark),
        exception_handlers={
            HTTPException: errors.http_error,
            RequestValidationError: errors.invalid_request,
            HeadgateError: errors.headgate_error,
            Exception: errors.unexpected,
        },
    )
    for part in (reading, state, logs, acting):
        app.include_router(part.router)
    app.openapi = partial(describe, app)  # type: ignore[method-assign]
    app.state.model = model
    app.state.access = allowed
    app.state.actions = actions
    app.state.spark = spark
    return app


def _routes(model: Model, access: Access) -> list[BaseRoute]:
    """Everything that is not REST."""
    return [
        Route("/healthz", _health(model)),
        Route("/readyz", _health(model)),
        Route("/metrics", metrics_page(model)),
        Route("/login", login(access), methods=["POST"]),
        Route("/logout", logout, methods=["POST"]),
        Mount("/static", StaticFiles(directory=str(files(pages) / "static"))),
        *pages.routes(model, read_only=access.read_only),
    ]


def _closing(actions: Actions, spark: SparkProcess) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            actions.close()
            spark.close()

    return lifespan


def _health(model: Model) -> Callable[[Request], Any]:
    """For probes: the home answers within seconds."""
    check = HomeCheck(model.home.jobs)

    async def answer(request: Request) -> Response:
        problem = await run_in_threadpool(check.problem)
        # not the reason: whoever asks need not be known
        text, code = ("the home does not answer\n", 503) if problem else ("ok\n", 200)
        return PlainTextResponse(text, status_code=code)

    return answer
