"""What a vectorised process function declares, checked before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from headgate.base.errors import GraphError
from headgate.steps.process.arrow import ArrowProcess, DeclaredColumn
from headgate.steps.process.codecs import AsIs, Codec
from headgate.steps.process.function import around
from headgate.steps.process.records import Struct
from headgate.steps.process.shape import (
    Handler,
    Shape,
    check_handlers,
    class_location,
    declared_of,
    handlers_of,
    location_of,
)
from headgate.steps.process.types import TYPES, UnknownType, codec_of, codec_of_spark


def arrow_shape(function: ArrowProcess, inputs: Sequence[str]) -> Shape:
    """Read and check a vectorised function."""
    cls = type(function)
    states = []
    for declared in declared_of(cls):
        if not isinstance(declared, DeclaredColumn):
            raise GraphError(
                f"'{declared.name}' is for functions of rows, and {cls.__name__} is one of batches",
                expected="column states only",
                remedy="use hg.column_state, or make the function a hg.Process",
                location=declared.location,
            )
        states.append(declared)
    methods = handlers_of(cls)
    check_handlers(cls, methods, inputs, ())
    handlers = tuple(Handler(name, None, location_of(methods[name])) for name in inputs)
    return Shape(cls.__name__, tuple(states), (), (), handlers, _output(cls))


def _output(cls: type[ArrowProcess]) -> Codec | None:
    gives: Any = cls.gives
    if gives is None:
        return None
    try:
        if isinstance(gives, str):
            gives = StructType.fromDDL(gives)
        if isinstance(gives, StructType):
            codec = codec_of_spark(gives)
            return codec if gives.names and not _unknown(codec) else _refuse(cls, gives)
        if isinstance(gives, type) and dataclasses.is_dataclass(gives):
            return codec_of(gives, among=around(cls))
    except UnknownType as error:
        return _refuse(cls, error.hint)
    except PySparkException as error:
        return _refuse(cls, f"{gives!r} ({str(error).strip().splitlines()[0]})")
    return _refuse(cls, gives)


def _unknown(codec: Codec) -> bool:
    if isinstance(codec, Struct):
        return any(_unknown(part) for _, part in codec.parts)
    return isinstance(codec, AsIs)


def _refuse(cls: type[ArrowProcess], got: Any) -> Codec:
    raise GraphError(
        f'{cls.__name__}.gives must be columns such as "page STRING, seen BIGINT", or a '
        f"dataclass of {TYPES}",
        got=got if isinstance(got, str) else repr(got),
        remedy="name the columns of the batches that its handlers yield",
        location=class_location(cls),
    )
