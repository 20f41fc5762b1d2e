"""What FastAPI hands to endpoints: the read model, the actions, Spark, and who is calling."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.routing import APIRoute

from headgate.base.errors import UsageError
from headgate.ui.actions import Actions, Caller
from headgate.ui.model import Model
from headgate.ui.spark_process import SparkProcess

_SHOWN = 50

# They are coroutines because FastAPI would send plain functions through its thread pool.


async def _model(request: Request) -> Model:
    found: Model = request.app.state.model
    return found


async def _actions(request: Request) -> Actions:
    found: Actions = request.app.state.actions
    return found


async def _spark(request: Request) -> SparkProcess:
    found: SparkProcess = request.app.state.spark
    return found


async def _caller(request: Request) -> Caller:
    role = str(getattr(request.state, "role", "") or "")
    return Caller(role, request.client.host if request.client else "")


ReadModel = Annotated[Model, Depends(_model)]
JobActions = Annotated[Actions, Depends(_actions)]
Spark = Annotated[SparkProcess, Depends(_spark)]
CalledBy = Annotated[Caller, Depends(_caller)]
"""For the audit."""


async def known_query(request: Request) -> None:
    """Refuse parameters that an endpoint does not have, and those that are given twice.

    FastAPI ignores the first and takes the last of the second: a typing error would go unseen.
    """
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    fields = {field.alias: field for field in route.dependant.query_params}
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in fields:
            raise UsageError(
                f"there is no parameter '{name[:_SHOWN]}'",
                expected=", ".join(fields) or "none",
                remedy="correct or remove it",
            )
        if name in seen and not _is_list(fields[name].field_info.annotation):
            raise UsageError(f"'{name}' is given twice", remedy="give it once")
        seen.add(name)


def _is_list(annotation: object) -> bool:
    return getattr(annotation, "__origin__", None) is list
