"""A schema registry with the REST paths and error codes of Confluent's, in this process.

None can be had as a package. This one keeps schemas in memory and checks compatibility of Avro's.
`requests` has what was asked; `fail_next` lets the next requests fail as a busy server does, and
`pages` are bodies that come with 200 instead of the next answers, as from a proxy before it.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import fastavro

from tests.registry.compatibility import misfit


class Schema(NamedTuple):
    kind: str
    text: str
    references: tuple[tuple[str, str, int], ...] = ()


class RefusedError(Exception):
    def __init__(self, status: int, code: int, message: str) -> None:
        self.status, self.code, self.message = status, code, message


class RegistryServer:
    """Use it in a `with`; `login` is user:password, `tls` a file with certificate and key."""

    def __init__(self, *, login: str | None = None, tls: Path | None = None) -> None:
        self.login, self.tls = login, tls
        self.schemas: list[Schema] = []
        self.subjects: dict[str, list[int]] = {}
        self.levels: dict[str, str] = {}
        self.requests: list[str] = []
        self.fail_next = 0
        self.pages: list[bytes] = []
        self._lock = threading.Lock()

    def __enter__(self) -> RegistryServer:
        registry = self

        class Handler(_Handler):
            of = registry

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if self.tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://127.0.0.1:{self._server.server_port}"

    @property
    def access(self) -> dict[str, Any]:
        """How the kernel is told to reach it."""
        ca = None if self.tls is None else self.tls.read_text()
        return {"urls": [self.url], "login": self.login, "ca": ca}

    def asked(self, path: str) -> int:
        """How often a path was asked for."""
        return self.requests.count(path)

    def add(self, subject: str, schema: Any, kind: str = "AVRO", check: bool = False) -> int:
        """The id of a schema under a subject, also of one that is not compatible."""
        given = Schema(kind, schema if isinstance(schema, str) else json.dumps(schema))
        return self.register(subject, given, check=check)

    def register(self, subject: str, schema: Schema, *, check: bool = True) -> int:
        self._parse(schema)
        with self._lock:
            known = self.subjects.get(subject, [])
            for id in known:
                if _form(self.schemas[id - 1]) == _form(schema):
                    return id
            if check and known and (why := self._incompatible(subject, schema)):
                raise RefusedError(
                    409, 409, "Schema being registered is incompatible with an earlier schema for "
                    f'subject "{subject}", details: [{why}]',
                )  # fmt: skip
            if schema not in self.schemas:
                self.schemas.append(schema)
            id = self.schemas.index(schema) + 1
            self.subjects.setdefault(subject, []).append(id)
            return id

    def _incompatible(self, subject: str, schema: Schema) -> str | None:
        level = self.levels.get(subject, self.levels.get("", "BACKWARD"))
        last = self.schemas[self.subjects[subject][-1] - 1]
        if level == "NONE":
            return None
        if last.kind != schema.kind:
            return f"it is {schema.kind}, and was {last.kind}"
        if schema.kind != "AVRO":
            return None
        new, old = json.loads(schema.text), json.loads(last.text)
        backward = None if level == "FORWARD" else misfit(new, old)
        forward = None if level == "BACKWARD" else misfit(old, new)
        return backward or forward

    def _parse(self, schema: Schema) -> None:
        try:
            if schema.kind == "PROTOBUF":
                return
            parsed = json.loads(schema.text)
            if schema.kind == "AVRO":
                named: dict[str, Any] = {}
                for _, subject, version in schema.references:
                    other = self.schemas[self.subjects[subject][version - 1] - 1]
                    fastavro.parse_schema(json.loads(other.text), named)
                fastavro.parse_schema(parsed, named)
        except Exception as error:
            raise RefusedError(422, 42201, f"Invalid schema {schema.text}: {error}") from error

    # REST

    def answer(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        for verb, form, call in _PATHS:
            if verb == method and (found := re.fullmatch(form, path)):
                return call(self, *map(unquote, found.groups()), body)
        raise RefusedError(404, 404, "HTTP 404 Not Found")

    def _by_id(self, id: str, _: object) -> Any:
        if not 0 < int(id) <= len(self.schemas):
            raise RefusedError(404, 40403, f"Schema {id} not found")
        return _shown(self.schemas[int(id) - 1])

    def _version(self, subject: str, version: str, _: object = None) -> Any:
        known = self._known(subject)
        number = len(known) if version == "latest" else int(version)
        if not 0 < number <= len(known):
            raise RefusedError(404, 40402, f"Version {version} not found.")
        id = known[number - 1]
        return {
            "subject": subject, "version": number, "id": id, **_shown(self.schemas[id - 1])
        }  # fmt: skip

    def _known(self, subject: str) -> list[int]:
        if subject not in self.subjects:
            raise RefusedError(404, 40401, f"Subject '{subject}' not found.")
        return self.subjects[subject]

    def _find(self, subject: str, body: Mapping[str, Any]) -> Any:
        given = _given(body)
        for number, id in enumerate(self._known(subject), 1):
            if _form(self.schemas[id - 1]) == _form(given):
                return self._version(subject, str(number))
        raise RefusedError(404, 40403, "Schema not found")

    def _compatible(self, subject: str, version: str, body: Mapping[str, Any]) -> Any:
        self._version(subject, version)
        return {"is_compatible": self._incompatible(subject, _given(body)) is None}

    def _set_level(self, subject: str, body: Mapping[str, Any]) -> Any:
        self.levels[subject] = body["compatibility"]
        return body

    def _level(self, subject: str, _: object) -> Any:
        return {"compatibilityLevel": self.levels.get(subject, self.levels.get("", "BACKWARD"))}


_PATHS: tuple[tuple[str, str, Any], ...] = (
    ("GET", r"/schemas/ids/(\d+)", RegistryServer._by_id),
    ("GET", r"/subjects", lambda registry, _: sorted(registry.subjects)),
    ("GET", r"/subjects/([^/]+)/versions", lambda registry, subject, _: list(
        range(1, len(registry._known(subject)) + 1))),
    ("POST", r"/subjects/([^/]+)/versions", lambda registry, subject, body: {
        "id": registry.register(subject, _given(body))}),
    ("GET", r"/subjects/([^/]+)/versions/(\d+|latest)", RegistryServer._version),
    ("POST", r"/subjects/([^/]+)", RegistryServer._find),
    ("POST", r"/compatibility/subjects/([^/]+)/versions/(\d+|latest)", RegistryServer._compatible),
    ("GET", r"/config/?([^/]*)", RegistryServer._level),
    ("PUT", r"/config/?([^/]*)", RegistryServer._set_level),
)  # fmt: skip


def _given(body: Mapping[str, Any]) -> Schema:
    references = [(r["name"], r["subject"], r["version"]) for r in body.get("references") or ()]
    return Schema(body.get("schemaType") or "AVRO", body["schema"], tuple(references))


def _form(schema: Schema) -> tuple[Any, ...]:
    """What two schemas have in common that are the same but for their spaces."""
    text: Any = schema.text
    if schema.kind != "PROTOBUF":
        text = json.loads(text)
    return schema.kind, text, schema.references


def _shown(schema: Schema) -> dict[str, Any]:
    shown: dict[str, Any] = {"schema": schema.text}
    if schema.kind != "AVRO":
        shown["schemaType"] = schema.kind
    if schema.references:
        shown["references"] = [
            {"name": name, "subject": subject, "version": version}
            for name, subject, version in schema.references
        ]
    return shown


class _Handler(BaseHTTPRequestHandler):
    of: RegistryServer
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        registry, path = self.of, urlsplit(self.path).path
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        registry.requests.append(path)
        try:
            if registry.fail_next > 0:
                registry.fail_next -= 1
                raise RefusedError(503, 50303, "Service is busy")
            if registry.pages:
                return self._send(200, registry.pages.pop(0), "text/html")
            if registry.login is not None:
                wanted = base64.b64encode(registry.login.encode()).decode()
                if self.headers.get("Authorization") != f"Basic {wanted}":
                    raise RefusedError(401, 40101, "User cannot access the resource.")
            self._say(200, registry.answer(self.command, path, body))
        except RefusedError as error:
            self._say(error.status, {"error_code": error.code, "message": error.message})

    do_GET = do_POST = do_PUT = do_DELETE = _serve

    def _say(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self._send(status, data, "application/vnd.schemaregistry.v1+json")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass
