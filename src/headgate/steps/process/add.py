"""Adding a process step to a job: what its function, inputs and keys must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql.types import StringType, StructField, StructType

from headgate.base.errors import GraphError, user_location
from headgate.graph.carried import check_carried, has_carried
from headgate.graph.hidden import EVENT_TIME, POSITION
from headgate.graph.keys import key_fields
from headgate.graph.plan import Node, Plan
from headgate.graph.port import KeyedPort
from headgate.steps.process.arrow import ArrowProcess
from headgate.steps.process.arrow_shape import arrow_shape
from headgate.steps.process.engine import OnError
from headgate.steps.process.function import Process
from headgate.steps.process.shape import Handler, Shape, columns_of, shape_of
from headgate.steps.process.step import ProcessStep
from headgate.steps.process.task import check_travels
from headgate.steps.process.types import fits

ERRORS = StructType(
    [StructField(name, StringType()) for name in ("handler", "key", "row", "error", "location")]
)


def add_process(
    plan: Plan,
    name: str,
    function: Process,
    inputs: Mapping[str, KeyedPort],
    on_error: OnError,
    *,
    operation: Callable[..., ProcessStep] = ProcessStep,
) -> Node:
    """Write a process step down; `operation` makes it, from the fields of a ProcessStep."""
    plan.check_name(name, "process")
    if on_error not in ("fail", "side"):
        raise GraphError(
            "on_error must be 'fail' or 'side'",
            step=name,
            got=repr(on_error),
            remedy="'fail' stops the job, 'side' sends the row to .errors",
            location=user_location(),
        )
    _check_inputs(plan, name, inputs)
    shape = _shape(name, function, list(inputs), on_error)
    check_travels(function, name)
    keys = _keys(plan, name, inputs)
    for handler in shape.inputs:
        port = inputs[handler.name].port
        _check_row(name, handler, port.schema)
        # rows of windows and of sources that are no topics have no position: they come by time
        check_carried(plan, port.node, port.output, name, POSITION, may_lack=True)
    _check_timers(plan, name, shape, inputs)
    schemas = _schemas(name, shape, on_error)
    names = tuple(field.name for field in keys)
    expressions = {input: keyed.keys for input, keyed in inputs.items()}
    return plan.add(
        name,
        operation(function, shape, expressions, names, on_error),
        schemas,
        inputs=[keyed.port.edge for keyed in inputs.values()],
        outputs=tuple(schemas),
        state_schema=_state_text(shape, keys),
        state_key=names,
    )


def _shape(name: str, function: Process, inputs: list[str], on_error: OnError) -> Shape:
    """What a function declares."""
    try:
        if isinstance(function, ArrowProcess):
            _check_vectorised(on_error)
            return arrow_shape(function, inputs)
        return shape_of(function, inputs)
    except GraphError as error:
        error.step = error.step or name
        raise


def _schemas(name: str, shape: Shape, on_error: OnError) -> dict[str, StructType]:
    """The columns of each output."""
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
    return schemas


def _check_vectorised(on_error: OnError) -> None:
    if on_error == "side":
        raise GraphError(
            "on_error='side' needs a function of rows, got one of batches",
            remedy="leave on_error out, or make the function a hg.Process",
            location=user_location(),
        )


def _check_inputs(plan: Plan, name: str, inputs: Mapping[str, KeyedPort]) -> None:
    if not inputs:
        raise GraphError(
            "a process step must have an input",
            step=name,
            remedy='name it like its handler: orders=orders.key_by("id")',
            location=user_location(),
        )
    for input, keyed in inputs.items():
        if not keyed.keys:
            raise GraphError(
                f"the input '{input}' must have a key",
                step=name,
                remedy='name columns: stream.key_by("column")',
                location=user_location(),
            )
        if keyed.port.plan is not plan:
            raise GraphError(
                f"the input '{input}' belongs to another job",
                step=name,
                remedy="use streams of this job",
                location=user_location(),
            )


def _keys(plan: Plan, name: str, inputs: Mapping[str, KeyedPort]) -> list[StructField]:
    """The parts of the key, named as in the first input; the others have the same types."""
    found: list[StructField] | None = None
    first = next(iter(inputs))
    for input, keyed in inputs.items():
        prototype = keyed.port.prototype()
        fields = key_fields(plan, prototype, keyed.keys, name)
        if found is None:
            found = fields
        elif [f.dataType for f in fields] != [f.dataType for f in found]:
            raise GraphError(
                f"the keys of the inputs '{first}' and '{input}' must have the same types",
                step=name,
                expected=", ".join(f.dataType.simpleString().upper() for f in found),
                got=", ".join(f.dataType.simpleString().upper() for f in fields),
                remedy="give the streams keys of the same types, with CAST(... AS ...) if need be",
                location=user_location(),
            )
    assert found is not None
    return found


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


def _check_timers(plan: Plan, step: str, shape: Shape, inputs: Mapping[str, KeyedPort]) -> None:
    ports = [keyed.port for keyed in inputs.values()]
    timed = any(has_carried(plan, p.node, p.output, EVENT_TIME) for p in ports)
    for timer in shape.timers:
        if timer.clock == "event" and not timed:
            raise GraphError(
                f"the timer '{timer.name}' is of event time, which none of the inputs has",
                step=step,
                remedy='give a source one: event_time=hg.event_time("column"), or use'
                ' hg.timer("processing")',
                location=timer.location,
            )


def _state_text(shape: Shape, keys: list[StructField]) -> str:
    key = ", ".join(f.dataType.simpleString() for f in keys)
    parts = []
    for state in shape.states:
        kinds = [state.key.spark.simpleString()] if state.key else []
        kinds.append(state.value.spark.simpleString())
        parts.append(f"{state.name} {state.kind}<{', '.join(kinds)}>")
    parts += [f"{t.name} timer" for t in shape.timers]
    return f"({key}) -> {', '.join(parts)}"
