"""A process step: the rows of one or more keyed streams given to a process function."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from headgate import jvm
from headgate.base.durations import spell_duration
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.carried import Carrying, check_carried, has_carried
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import EVENT_TIME, POSITION
from headgate.graph.keys import key_fields, other_key, written_keys
from headgate.graph.letters import Letters
from headgate.graph.operation import Fit, Operation
from headgate.graph.operation import Shape as StepShape
from headgate.graph.plan import Node, Plan
from headgate.graph.port import KeyedPort
from headgate.steps.process import format_1
from headgate.steps.process.arrow import ArrowProcess
from headgate.steps.process.arrow_shape import arrow_shape
from headgate.steps.process.codecs import Codec
from headgate.steps.process.declare import DeclaredState, Process
from headgate.steps.process.engine import OnError
from headgate.steps.process.frames import input_frame, step_frame
from headgate.steps.process.records import Record
from headgate.steps.process.shape import Handler, Shape, columns_of, shape_of
from headgate.steps.process.task import check_travels
from headgate.steps.process.types import fits
from headgate.steps.process.wire import OUTPUT

ERRORS = StructType(
    [StructField(name, StringType()) for name in ("handler", "key", "row", "error", "location")]
)


@dataclass(frozen=True)
class ProcessStep(Operation):
    """Rows of one or more keyed inputs given to a user's Python, which keeps state by key.

    `key` has the key's expressions of each input, `names` what its parts are called.
    """

    function: Process
    declared: Shape
    key: Mapping[str, tuple[Expr, ...]]
    names: tuple[str, ...]
    on_error: OnError
    kind = "process"
    shape = StepShape.STATEFUL
    state_view = "named"

    @property
    def needs(self) -> tuple[str, ...]:
        return (EVENT_TIME, POSITION)

    def config(self) -> Mapping[str, Any]:
        return {
            "function": self.declared.name,
            "inputs": list(self.key),
            "key": list(self.names),
            "written": written_keys(self.key, self.names),
            "states": [_state_config(state) for state in self.declared.states],
            "timers": {timer.name: timer.clock for timer in self.declared.timers},
            "required": [p for s in self.declared.states for p in _required(s.value, s.name)],
            "on_error": self.on_error,
            "code": _code(type(self.function)),
        }

    def labels(self) -> Mapping[str, str]:
        return {
            "function": self.declared.name,
            "inputs": ", ".join(self.key),
            "key": ", ".join(self.names),
            "states": ", ".join(_spelled(s) for s in self.declared.states),
            "timers": ", ".join(f"{t.name} ({t.clock})" for t in self.declared.timers),
            "on_error": self.on_error,
        }

    def keys(self, input: int) -> tuple[Expr, ...]:
        return list(self.key.values())[input]

    @property
    def by_event_time(self) -> bool:
        return self._has_timers("event")

    @property
    def needs_ticks(self) -> bool:
        return bool(self.declared.timers)

    def _has_timers(self, clock: str) -> bool:
        return any(timer.clock == clock for timer in self.declared.timers)

    def side_remedy(self, output: str) -> str:
        if output == "errors":
            return "make the step with on_error='side'"
        return super().side_remedy(output)

    def letters(self, output: str) -> Letters | None:
        if output != "errors":
            return None
        return Letters("HANDLER_FAILED", "concat_ws(' at ', error, location)", ("key",))

    def side_name(self, declared: object) -> str | None:
        return next((side.name for side in self.declared.sides if side == declared), None)

    def check_reader(self, node: Node, output: str, reader: str) -> None:
        if output == "out" and not self.declared.output:
            raise GraphError(
                f"'{node.step.id}' gives no rows here: no handler says that it yields any",
                step=reader,
                expected="-> hg.Out[...] at a handler",
                remedy=f"annotate what handlers yield, or use a side output of '{node.step.id}'",
                location=user_location(),
            )

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        """Its rows have the time of the row or timer that they came from, and their own order."""
        step = rows.node.step.id
        if name != EVENT_TIME:
            return
        if isinstance(self.function, ArrowProcess):
            raise rows.lost(
                f"the rows of '{step}' have no {rows.what(name)}: its function gives whole batches",
                "make the function a hg.Process",
            )
        if not rows.any_input_has(name):
            raise rows.lost(
                f"the rows of '{step}' have no {rows.what(name)}: none of its inputs has one",
                'give a source one: event_time=hg.event_time("column")',
            )

    def input_rows(self, node: Node, input: int, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        return input_frame(self.declared, input, rows, keys)

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        return step_frame(node, self.function, self.declared, self.names, self.on_error, inputs)

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        found = {}
        hidden = [jvm.quoted(name) for name in carried]
        for number, (name, schema) in enumerate(node.schemas.items()):
            if not job.is_read(node.step.id, name) or not schema.names:
                continue
            row = f"{OUTPUT}{number}"
            parts = [jvm.quoted(row, c, alias=c) for c in schema.names]
            found[name] = jvm.select(base, [*parts, *hidden], where=f"{row} IS NOT NULL")
        return found

    @property
    def state_names(self) -> list[str]:
        timers = [timer.name for timer in self.declared.timers if timer.clock == "event"]
        return [state.name for state in self.declared.states] + timers

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        was, now = (
            {name: config["written"].get(name, config["key"]) for name in config["inputs"]}
            for config in (old, new)
        )
        conflicts = (*_without_value(gains, new["required"]), *_other_clocks(old, new))
        return Fit(conflicts, other_key(was, now))

    @classmethod
    def config_1(cls, detail: Mapping[str, str]) -> dict[str, Any]:
        return format_1.config_of(detail)

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str]:
        return format_1.detail_of(config)


def _without_value(gains: Sequence[str], required: Sequence[str]) -> Iterator[str]:
    """New fields of dataclasses in state that old values cannot have."""
    for gain in gains:
        if gain.startswith("column ") and gain.split()[1] in required:
            yield (
                f"field {gain.split()[1]} is new, and what was stored has no value for it: give "
                "it a default, or let it be None"
            )


def _other_clocks(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Timers that would wait for another clock than the one that they were set for."""
    for name, clock in new["timers"].items():
        before = old["timers"].get(name, clock)
        if before != clock:
            yield (
                f"timer {name} was one of {before} time and is one of {clock} time: give it "
                "another name"
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


def _state_config(state: DeclaredState) -> dict[str, Any]:
    return {
        "name": state.name,
        "kind": state.kind,
        "key": None if state.key is None else state.key.name,
        "value": state.value.name,
        "ttl_ms": None if state.ttl is None else state.ttl // timedelta(milliseconds=1),
    }


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
