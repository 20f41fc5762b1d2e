"""The gate in front of every page and response: Host, Origin, token, size, and safe headers."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.ui.access import Access, cookie_of

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_READING = ("GET", "HEAD", "OPTIONS")
_MOST_BYTES = 64 * 1024
# What a browser needs to show the form in which the token is typed, and probes of a cluster.
_OPEN_PATHS = ("/login", "/healthz", "/readyz")
_OPEN_FOLDER = "/static/"


class Gate:
    """Checks every request, and puts the safe headers on every response.

    1. The Host header names this server (no rebinding of names).
    2. An Origin header, where there is one, is our own; other sites get nothing.
    3. The caller has a token or our cookie, if the server has tokens.
    4. A request that changes something comes from an operator, in JSON, of at most 64 KiB.
    """

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # no websockets
        send = _with_headers(scope["path"], send)
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            # FastAPI's routes know GET alone; servers send the headers of its response
            scope = {**scope, "method": "GET"}
        await self._app(scope, _limited(receive), send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        access, method, path = self._access, scope["method"], scope["path"]
        if not access.knows_host(headers.get("host", "")):
            return problem(421, "BAD_HOST", "the Host header must name this server",
                           "use its own address, or name it with --allow-host")  # fmt: skip
        if not _same_origin(scope, headers):
            return problem(
                403, "FOREIGN_ORIGIN", "the Origin must be this server, got another site"
            )
        role = access.role(_bearer(headers), cookie_of(headers.get("cookie")))
        scope.setdefault("state", {})["role"] = role
        open_ = path in _OPEN_PATHS or path.startswith(_OPEN_FOLDER)
        if role is None and not open_:
            if method == "GET" and "text/html" in headers.get("accept", ""):
                return RedirectResponse("/login", status_code=303)
            refused = problem(401, "NO_TOKEN", "the token is missing or wrong",
                              "send it as: Authorization: Bearer TOKEN")  # fmt: skip
            refused.headers["WWW-Authenticate"] = "Bearer"
            return refused
        if method in _READING or open_:
            return None
        if role != "operator":
            return problem(403, "READ_ONLY", "this server or token is read-only",
                           "start the UI without --read-only, or use the other token")  # fmt: skip
        if not _is_json(headers):
            return problem(415, "NOT_JSON", "the body must be JSON",
                           "send Content-Type: application/json")  # fmt: skip
        return None


def problem(status: int, code: str, message: str, remedy: str | None = None) -> Response:
    """An error as JSON, with Flink's `errors` and our own fields."""
    body = {"errors": [message], "code": code, "remedy": remedy}
    return JSONResponse(body, status_code=status)


def _limited(receive: Receive) -> Receive:
    """Stop reading a body that is longer than any that makes sense here."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > _MOST_BYTES:
            raise HTTPException(413)
        return message

    return counted


def _with_headers(path: str, send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            if not path.startswith(_OPEN_FOLDER):
                headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending


def _same_origin(scope: Scope, headers: Headers) -> bool:
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    if origin is None:
        # A link from elsewhere may open a page; nothing else may come from another site.
        opens_page = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        return site in (None, "same-origin", "none") or opens_page
    parts = urlsplit(origin)
    return bool(parts.netloc) and parts.netloc.lower() == headers.get("host", "").lower()


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _is_json(headers: Headers) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def read_json_object(body: bytes) -> dict[str, object] | None:
    """The JSON object of a body; None if it is not one. An empty body is {}."""
    if not body.strip():
        return {}
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
