"""Signing in from a browser: it gets a cookie for the token, which other sites cannot send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from headgate.ui.access import COOKIE, Access
from headgate.ui.security import problem, read_json_object

_DAYS = 30 * 24 * 3600


def login(access: Access) -> Callable[[Request], Awaitable[Response]]:
    """POST /login with {"token": "..."} gives the cookie."""

    async def sign_in(request: Request) -> Response:
        body = read_json_object(await request.body()) or {}
        token = body.get("token")
        cookie = access.cookie(token) if isinstance(token, str) else None
        if cookie is None:
            return problem(401, "NO_TOKEN", "the token is missing or wrong",
                           "look for it where headgate ui was started")  # fmt: skip
        answer = JSONResponse({"role": access.role(None, cookie)})
        answer.set_cookie(
            COOKIE,
            cookie,
            max_age=_DAYS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    return sign_in


async def logout(request: Request) -> Response:
    """POST /logout takes the cookie back."""
    answer = JSONResponse({"role": None})
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer
