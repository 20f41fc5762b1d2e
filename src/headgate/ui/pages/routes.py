"""Which page is at which address. Pages only read; what changes something goes through REST."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from headgate.base.errors import HeadgateError, NotFoundError, UsageError
from headgate.base.secrets import redact
from headgate.ui.model import Model
from headgate.ui.pages import (
    action_pages,
    checkpoint_pages,
    history_pages,
    job_pages,
    log_pages,
    metrics_pages,
    state_pages,
)
from headgate.ui.pages.links import PREFIX, page
from headgate.ui.pages.render import render
from headgate.ui.pages.request import PageRequest
from headgate.ui.pages.site import PageResponse, Site

Page = Callable[[PageRequest], PageResponse]
PAGES: dict[str, Page] = {
    "/jobs": job_pages.jobs,
    "/jobs/{job}": job_pages.overview,
    "/jobs/{job}/metrics": metrics_pages.metrics,
    "/jobs/{job}/checkpoints": checkpoint_pages.overview,
    "/jobs/{job}/checkpoints/history": checkpoint_pages.history,
    "/jobs/{job}/checkpoints/summary": checkpoint_pages.summary,
    "/jobs/{job}/checkpoints/configuration": checkpoint_pages.configuration,
    "/jobs/{job}/checkpoints/{run}/{checkpoint}": checkpoint_pages.checkpoint,
    "/jobs/{job}/savepoints": history_pages.savepoints,
    "/jobs/{job}/exceptions": history_pages.exceptions,
    "/jobs/{job}/watermarks": history_pages.watermarks,
    "/jobs/{job}/outputs": history_pages.outputs,
    "/jobs/{job}/logs": log_pages.logs,
    "/jobs/{job}/runs": history_pages.runs,
    "/jobs/{job}/state": state_pages.state,
    "/jobs/{job}/actions/{action}": action_pages.action,
    "/jobs/{job}/operations": action_pages.operations,
    "/jobs/{job}/operations/{operation}": action_pages.operation,
    "/jobs/{job}/configuration": history_pages.configuration,
}
"""All below PREFIX."""


def routes(model: Model, *, read_only: bool) -> Sequence[BaseRoute]:
    """All pages: / and below /ui, and GET /login."""

    def route(path: str, shows: Page) -> Route:
        return Route(path, _serve(model, shows, read_only=read_only))

    return [
        Route("/", _to_jobs),
        Route(PREFIX, _to_jobs),
        route("/login", lambda request: PageResponse("login.html")),
        *(route(PREFIX + path, shows) for path, shows in PAGES.items()),
        route(PREFIX + "/{rest:path}", _nowhere),
    ]


async def _to_jobs(request: Request) -> Response:
    return RedirectResponse(page("jobs"))


def _nowhere(request: PageRequest) -> PageResponse:
    raise NotFoundError("there is no such page", remedy="start from the list of jobs")


def _serve(
    model: Model, shows: Page, *, read_only: bool
) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        # Without a token there is only the form to sign in, which does not show the home.
        role = request.scope.get("state", {}).get("role")
        site = Site(redact(model.home.url) if role else "", read_only or role != "operator")
        return await run_in_threadpool(_answer, PageRequest(model, request), shows, site)

    return serve


def _answer(request: PageRequest, shows: Page, site: Site) -> Response:
    try:
        response = shows(request)
    except HeadgateError as error:
        response = _error(error)
    text = render(response.template, **{"site": site, **response.values})
    return HTMLResponse(text, status_code=response.status)


def _error(error: HeadgateError) -> PageResponse:
    status = 500
    if isinstance(error, NotFoundError):
        status = 404
    elif isinstance(error, UsageError):
        status = 400
    return PageResponse("error.html", {"error": error}, status)
