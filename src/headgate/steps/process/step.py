"""What a process step is: config and labels, frames and outputs, which state it takes over."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame

from headgate import jvm
from headgate.base.durations import spell_duration
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.carried import Carrying
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import EVENT_TIME, POSITION
from headgate.graph.keys import other_key, written_keys
from headgate.graph.letters import Letters
from headgate.graph.operation import Fit, Operation
from headgate.graph.operation import Shape as StepShape
from headgate.graph.plan import Node
from headgate.steps.process import format_1
from headgate.steps.process.arrow import ArrowProcess
from headgate.steps.process.codecs import Codec
from headgate.steps.process.declare import DeclaredState
from headgate.steps.process.engine import OnError
from headgate.steps.process.frames import input_frame, step_frame
from headgate.steps.process.function import Process
from headgate.steps.process.records import Record
from headgate.steps.process.shape import Shape
from headgate.steps.process.wire import OUTPUT


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
