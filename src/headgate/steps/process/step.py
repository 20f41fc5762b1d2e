"""Process steps: the rows of one or more keyed streams given to a process function."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping

from pyspark.sql.types import StringType, StructField, StructType

from headgate.api.stream import Stream
from headgate.base.durations import spell_duration
from headgate.base.errors import GraphError, user_location
from headgate.graph import Step
from headgate.graph.carried import check_carried, has_carried
from headgate.graph.plan import EVENT_TIME, POSITION, Plan, ProcessOp
from headgate.steps.process.arrow import ArrowProcess
from headgate.steps.process.arrow_shape import arrow_shape
from headgate.steps.process.codecs import Codec
from headgate.steps.process.declare import DeclaredState, Process
from headgate.steps.process.engine import OnError
from headgate.steps.process.records import Record
from headgate.steps.process.shape import Handler, Shape, columns_of, shape_of
from headgate.steps.process.task import check_travels
from headgate.steps.process.types import fits
from headgate.steps.window.step import Keyed, _key_fields, key_detail

ERRORS = StructType(
    [StructField(name, StringType()) for name in ("handler", "key", "row", "error", "location")]
)


class Processed(Stream):
    """What a process function gives."""

    @property
    def errors(self) -> Stream:
        """The rows whose handler failed, and why: handler, key, row, error, location."""
        return self.side("errors")


def add_process(
    plan: Plan, name: str, function: Process, inputs: Mapping[str, Keyed], on_error: OnError
) -> Processed:
    """Write a process step down."""
    plan.check_name(name, "process")
    if on_error not in ("fail", "side"):
        raise GraphError(
            "on_error is not known",
            step=name,
            expected="'fail' or 'side'",
            got=repr(on_error),
            remedy="use one of the two",
            location=user_location(),
        )
    _check_inputs(plan, name, inputs)
    try:
        if isinstance(function, ArrowProcess):
            _check_vectorised(on_error)
            shape = arrow_shape(function, list(inputs))
        else:
            shape = shape_of(function, list(inputs))
    except GraphError as error:
        error.step = error.step or name
        raise
    check_travels(function, name)
    keys = _keys(plan, name, inputs)
    for handler in shape.inputs:
        keyed = inputs[handler.name]
        _check_row(name, handler, keyed._stream.schema)
        # rows of windows and of sources that are no topics have no position: they come by time
        stream = keyed._stream
        check_carried(plan, stream._node, stream._output, name, POSITION, may_lack=True)
    _check_timers(plan, name, shape, inputs)
    schemas = {"out": columns_of(shape.output)}
    for side in shape.sides:
        if side.name in ("out", "errors"):
            raise GraphError(
                f"a side output cannot be called '{side.name}'",
                step=name,
                remedy="rename it",
                location=side.location,
            )
        schemas[side.name] = columns_of(side.value)
    if on_error == "side":
        schemas["errors"] = ERRORS
    names = tuple(field.name for field in keys)
    step = Step(
        id=name,
        kind="process",
        named=True,
        inputs=tuple(keyed._stream._edge for keyed in inputs.values()),
        outputs=tuple(schemas),
        schema=schemas["out"].simpleString(),
        stateful=True,
        state_schema=_state_text(shape, keys),
        detail={
            "function": shape.name,
            "inputs": ", ".join(inputs),
            "key": ", ".join(names),
            "states": ", ".join(_spelled(s) for s in shape.states),
            "timers": ", ".join(f"{t.name} ({t.clock})" for t in shape.timers),
            "on_error": on_error,
            "code": _code(type(function)),
            "state_key": json.dumps(names),
            **key_detail({n: keyed._keys for n, keyed in inputs.items()}, names),
            "required": json.dumps([p for s in shape.states for p in _required(s.value, s.name)]),
        },
        location=str(user_location()),
    )
    expressions = tuple(keyed._keys for keyed in inputs.values())
    operation = ProcessOp(function, shape, expressions, names, on_error)
    return Processed(plan, plan.add(step, operation, schemas))


def _check_vectorised(on_error: OnError) -> None:
    if on_error == "side":
        raise GraphError(
            "a function of batches has no row that could go aside",
            remedy="leave on_error out, or make the function a hg.Process",
            location=user_location(),
        )


def _check_inputs(plan: Plan, name: str, inputs: Mapping[str, Keyed]) -> None:
    if not inputs:
        raise GraphError(
            "a process step needs an input",
            step=name,
            remedy='name it like its handler: orders=orders.key_by("id")',
            location=user_location(),
        )
    for input, keyed in inputs.items():
        if not isinstance(keyed, Keyed):
            raise GraphError(
                f"the input '{input}' has no key",
                step=name,
                got=type(keyed).__name__,
                remedy='give it one: stream.key_by("column")',
                location=user_location(),
            )
        if not keyed._keys:
            raise GraphError(
                f"the input '{input}' has no key",
                step=name,
                remedy='name columns: stream.key_by("column")',
                location=user_location(),
            )
        if keyed._stream._plan is not plan:
            raise GraphError(
                f"the input '{input}' is of another job",
                step=name,
                remedy="use streams of this job",
                location=user_location(),
            )


def _keys(plan: Plan, name: str, inputs: Mapping[str, Keyed]) -> list[StructField]:
    """The parts of the key, named as in the first input; the others have the same types."""
    found: list[StructField] | None = None
    first = next(iter(inputs))
    for input, keyed in inputs.items():
        prototype = plan.prototype(keyed._stream.schema)
        fields = _key_fields(plan, prototype, keyed._keys, name)
        if found is None:
            found = fields
        elif [f.dataType for f in fields] != [f.dataType for f in found]:
            raise GraphError(
                f"the key of the input '{input}' is of another type than that of '{first}'",
                step=name,
                expected=", ".join(f.dataType.simpleString().upper() for f in found),
                got=", ".join(f.dataType.simpleString().upper() for f in fields),
                remedy="give the streams keys of the same types, with CAST(... AS ...) if need be",
                location=user_location(),
            )
    assert found is not None
    return found


def row_codec(handler: Handler, schema: StructType) -> Record | None:
    """The dataclass of an input's rows, made from the columns that the stream has."""
    if handler.row is None:
        return None
    return handler.row.with_parts([n for n, _ in handler.row.parts if n in schema.names])


def _check_row(step: str, handler: Handler, schema: StructType) -> None:
    if handler.row is None:
        return
    kind = handler.row.name
    for name, codec in handler.row.parts:
        if name not in schema.names:
            if name in handler.row.defaults:
                continue
            raise GraphError(
                f"the input '{handler.name}' has no column '{name}', which {kind} has",
                step=step,
                expected="one of " + ", ".join(schema.names),
                remedy="give the field a default, or select the column",
                location=handler.location,
            )
        if not fits(codec, schema[name].dataType):
            raise GraphError(
                f"the column '{name}' of the input '{handler.name}' does not fit {kind}.{name}",
                step=step,
                expected=codec.name,
                got=schema[name].dataType.simpleString().upper(),
                remedy="change the field's type, or cast the column",
                location=handler.location,
            )


def _check_timers(plan: Plan, step: str, shape: Shape, inputs: Mapping[str, Keyed]) -> None:
    streams = [keyed._stream for keyed in inputs.values()]
    timed = any(has_carried(plan, s._node, s._output, EVENT_TIME) for s in streams)
    for timer in shape.timers:
        if timer.clock == "event" and not timed:
            raise GraphError(
                f"the timer '{timer.name}' is of event time, which none of the inputs has",
                step=step,
                remedy='give a source one: event_time=hg.event_time("column"), or use'
                ' hg.timer("processing")',
                location=timer.location,
            )


def _spelled(state: DeclaredState) -> str:
    kinds = state.value.name if state.key is None else f"{state.key.name}, {state.value.name}"
    ttl = f", ttl {spell_duration(state.ttl)}" if state.ttl else ""
    return f"{state.name} {state.kind}({kinds}{ttl})"


def _state_text(shape: Shape, keys: list[StructField]) -> str:
    key = ", ".join(f.dataType.simpleString() for f in keys)
    parts = []
    for state in shape.states:
        kinds = [state.key.spark.simpleString()] if state.key else []
        kinds.append(state.value.spark.simpleString())
        parts.append(f"{state.name} {state.kind}<{', '.join(kinds)}>")
    parts += [f"{t.name} timer" for t in shape.timers]
    return f"({key}) -> {', '.join(parts)}"


def _required(codec: Codec, at: str) -> Iterator[str]:
    """The fields of dataclasses in a state that have neither a default nor can be None."""
    if not isinstance(codec, Record):
        return
    for name, part in codec.parts:
        if name not in codec.optional and name not in codec.defaults:
            yield f"{at}.{name}"
        yield from _required(part, f"{at}.{name}")


def _code(cls: type) -> str:
    """A fingerprint of a function's class: a changed one is a changed graph."""
    texts = []
    for base in cls.__mro__:
        if base in (Process, ArrowProcess, object):
            continue
        try:
            texts.append(inspect.getsource(base))
        except (OSError, TypeError):
            texts.append(base.__qualname__)
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]
