"""Schemathesis against the OpenAPI description: what is described is what is served.

The examples are the same in every run, and only so many that the tests stay quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from starlette.applications import Starlette
from starlette.testclient import TestClient

from headgate.ui.access import Access
from headgate.ui.app import create_app
from headgate.ui.rest import acting, logs, reading, state
from tests.ui.small_home import JOB, LOG, small_home

KNOWN = {"job": JOB, "checkpoint": 1, "step": "out", "action": "stop", "label": "x", "file": LOG}
GENERATED = [
    (path, method)
    for path, methods in schemathesis.openapi.from_asgi(
        "/openapi.json", create_app("memory://openapi", access=Access(names=("testserver",)))
    ).raw_schema["paths"].items()
    for method in methods
]  # fmt: skip
few = settings(
    max_examples=5,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Starlette:
    home = small_home(tmp_path_factory.mktemp("openapi"))
    return create_app(home, access=Access(names=("testserver",)))


@pytest.fixture(scope="module")
def api(app: Starlette) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.mark.parametrize(("path", "method"), GENERATED)
def test_requests_are_answered_as_described(api: Any, path: str, method: str) -> None:
    operation = api[path][method.upper()]
    right = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    _check(right, lambda case: None)

    def known(case: Any) -> None:
        for name in case.path_parameters or {}:
            case.path_parameters[name] = KNOWN.get(name, case.path_parameters[name])

    _check(right, known)
    if operation.query or operation.body:
        _check(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE), lambda case: None)


def _check(strategy: Any, change: Callable[[Any], None]) -> None:
    @few
    @given(case=strategy)
    def check(case: Any) -> None:
        change(case)
        case.call_and_validate()

    check()


def test_every_route_is_described(app: Starlette) -> None:
    with _client(app) as client:
        described = client.get("/openapi.json").json()["paths"]
    parts = (reading, state, logs, acting)
    served = {getattr(route, "path", "") for part in parts for route in part.router.routes}
    assert all(path.startswith("/jobs") for path in served)
    assert served == set(described)
    ids = [operation["operationId"] for path in described.values() for operation in path.values()]
    assert len(set(ids)) == len(ids) == len(GENERATED)


def test_the_description_names_no_folder(app: Starlette, tmp_path: Path) -> None:
    with _client(app) as client:
        assert str(tmp_path.parent) not in client.get("/openapi.json").text


@contextmanager
def _client(app: Starlette) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client
