"""A join step: rows of two keyed streams that have the same key and belong together in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType, TimestampType

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.analysis import analysed, column, expression_text
from headgate.graph.carried import Carrying, check_carried
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import EVENT_TIME, POSITION
from headgate.graph.keys import key_fields, other_key, written_keys
from headgate.graph.letters import Letters, literal
from headgate.graph.operation import Fit, Operation, Shape
from headgate.graph.plan import Node, Plan
from headgate.graph.port import KeyedPort
from headgate.steps.join import frames
from headgate.steps.join.within import (
    Between,
    SameWindow,
    Within,
    bounds_of,
    spelled,
    window_of,
)

Unmatched: TypeAlias = Literal["drop", "null", "side"]
SIDES = ("left", "right")
_WINDOW = [StructField("window_start", TimestampType()), StructField("window_end", TimestampType())]


@dataclass(frozen=True)
class JoinStep(Operation):
    """Pairs of rows of two keyed streams; `key` has the key's expressions of each side."""

    within: Within
    key: tuple[tuple[Expr, ...], tuple[Expr, ...]]
    names: tuple[str, ...]
    condition: Expr | None
    into: str
    take: tuple[Expr, ...] | None
    unmatched: tuple[Unmatched, Unmatched]
    kind = "join"
    # 2: the rows of a key in one value; the layouts of the stores tell the two apart
    config_version = 2
    shape = Shape.STATEFUL

    @property
    def needs(self) -> tuple[str, ...]:
        return (EVENT_TIME, POSITION)

    def config(self) -> Mapping[str, Any]:
        taken = None if self.take is None else [expression_text(t) for t in self.take]
        return {
            "within": self.within.config(),
            "key": list(self.names),
            "written": written_keys(dict(zip(SIDES, self.key, strict=True)), self.names),
            "where": None if self.condition is None else expression_text(self.condition),
            "into": self.into if taken is None else None,
            "take": taken,
            "left_unmatched": self.unmatched[0],
            "right_unmatched": self.unmatched[1],
        }

    def labels(self) -> Mapping[str, str]:
        config = self.config()
        labels = {
            "within": str(self.within),
            "key": ", ".join(self.names),
            "added": ", ".join(config["take"]) if config["take"] else self.into,
            "left_unmatched": self.unmatched[0],
            "right_unmatched": self.unmatched[1],
        }
        return labels if config["where"] is None else {**labels, "where": config["where"]}

    def keys(self, input: int) -> tuple[Expr, ...]:
        return self.key[input]

    @property
    def by_event_time(self) -> bool:
        return True

    def side_remedy(self, output: str) -> str:
        for side in SIDES:
            if output == f"unmatched_{side}":
                return f"make the join with {side}_unmatched='side'"
        return super().side_remedy(output)

    def letters(self, output: str) -> Letters | None:
        if output != "late":
            return None
        why = "what would match the row was forgotten when it came, or it has no event time"
        return Letters("LATE_ROW", literal(why))

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        if name == EVENT_TIME and output == "late" and not rows.may_lack:
            raise rows.lost(
                f"the late rows of '{rows.node.step.id}' are behind the watermark already",
                "let the sources wait longer for late rows: hg.event_time(..., delay=...)",
            )

    def input_rows(self, node: Node, input: int, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        return frames.input_frame(input, rows, keys)

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        left, right = self._sides(job, node)
        pairs = jvm.prototype(job.spark, _pair(left, right, self.into))
        where = None if self.condition is None else column(self.condition)
        lower, upper = bounds_of(self.within)
        spec = {
            "step": node.step.id,
            "keys": len(self.names),
            "lower": lower,
            "upper": upper,
            "windows": window_of(self.within),
            "left_unmatched": self.unmatched[0],
            "right_unmatched": self.unmatched[1],
            "position": POSITION,
            "time": EVENT_TIME,
        }
        return frames.join_frame(inputs, spec, (left, right), pairs, where)

    def _sides(self, job: Compiling, node: Node) -> tuple[StructType, StructType]:
        left, right = (job.built.node(e.step).schemas[e.output] for e in node.step.inputs)
        return left, right

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        left, right = self._sides(job, node)
        hidden = [F.col(name) for name in carried]
        times = self._window_times()
        found = {
            "unmatched_left": [*frames.parts(frames.LEFT, left), *times],
            "unmatched_right": [*frames.parts(frames.RIGHT, right), *times],
            "late": [F.col(frames.LEFT).alias("left"), F.col(frames.RIGHT).alias("right")],
        }
        made = {
            output: frames.of_output(base, output).select(*found[output], *hidden)
            for output in node.step.side_outputs
            if job.is_read(node.step.id, output)
        }
        if job.is_read(node.step.id, "out"):
            made["out"] = self._main(node, base, left, carried)
        return made

    def _main(
        self, node: Node, base: DataFrame, left: StructType, carried: Sequence[str]
    ) -> DataFrame:
        rows = frames.of_output(base, "out")
        own, times = frames.parts(frames.LEFT, left), self._window_times()
        hidden = [F.col(name) for name in carried]
        if self.take is None:
            added = F.col(frames.RIGHT).alias(self.into)
            return rows.select(*own, added, *times, *hidden)
        rows = frames.with_taken(rows, [column(t) for t in self.take])
        names = node.schemas["out"].names[len(own) : len(node.schemas["out"].names) - len(times)]
        added_columns = [F.col(frames.TAKEN).getField(name).alias(name) for name in names]
        return rows.select(*own, *added_columns, *times, *hidden)

    def _window_times(self) -> list[Column]:
        if isinstance(self.within, Between):
            return []
        return frames.window_times(self.within.window["size_us"])

    @property
    def passing_columns(self) -> tuple[str, ...]:
        return ("number",)

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        conflicts = []
        if old["within"] != new["within"]:
            was, now = (spelled(config["within"]) for config in (old, new))
            conflicts.append(
                f"within was {was} and is now {now}; rows that could match may have been "
                "forgotten already"
            )
        for side in SIDES:
            was, now = (config[f"{side}_unmatched"] for config in (old, new))
            if was == "drop" and now != "drop":
                conflicts.append(
                    f"its {side}_unmatched was drop and is {now}, and the rows that it has kept do"
                    " not say whether they had a match"
                )
        before, after = (
            {side: config["written"].get(side, config["key"]) for side in SIDES}
            for config in (old, new)
        )
        return Fit(tuple(conflicts), other_key(before, after))


def _pair(left: StructType, right: StructType, into: str) -> StructType:
    """What a condition is over: the left row's columns, and the right row as a struct."""
    return StructType([*left.fields, StructField(into, right)])


def add_join(
    left: KeyedPort,
    name: str,
    right: KeyedPort,
    *,
    within: Within,
    where: Expr | None,
    into: str | None,
    take: Sequence[Expr] | None,
    unmatched: tuple[Unmatched, Unmatched],
) -> Node:
    """Write a join down."""
    plan = left.port.plan
    plan.check_name(name, "join")
    if into is not None and take is not None:
        raise GraphError(
            "into and take exclude each other",
            step=name,
            remedy="use into for the whole row as a struct, or take for columns of it",
            location=user_location(),
        )
    _check_unmatched(name, unmatched)
    keys = _keys(plan, name, (left, right))
    for keyed in (left, right):
        port = keyed.port
        check_carried(plan, port.node, port.output, name, EVENT_TIME)
        # rows of windows and of sources that are no topics have no position: they come by time
        check_carried(plan, port.node, port.output, name, POSITION, may_lack=True)
    called = into or right.port.step.partition("/")[0]
    if where is not None:
        _check_where(plan, name, where, _pair(left.port.schema, right.port.schema, called))
    if take is None:
        added = [StructField(called, right.port.schema)]
    else:
        added = _taken(plan, name, right, take)
    times = _WINDOW if isinstance(within, SameWindow) else []
    schemas = {"out": StructType([*left.port.schema.fields, *added, *times])}
    for side, keyed, what in zip(SIDES, (left, right), unmatched, strict=True):
        if what == "side":
            schemas[f"unmatched_{side}"] = StructType([*keyed.port.schema.fields, *times])
    for output, schema in schemas.items():
        _check_names(name, output, schema)
    schemas["late"] = StructType(
        [StructField("left", left.port.schema), StructField("right", right.port.schema)]
    )
    names = tuple(field.name for field in keys)
    operation = JoinStep(
        within, (left.keys, right.keys), names, where, called,
        None if take is None else tuple(take), unmatched,
    )  # fmt: skip
    key_text = ", ".join(field.dataType.simpleString() for field in keys)
    kept = f"left {left.port.schema.simpleString()}, right {right.port.schema.simpleString()}"
    return plan.add(
        name,
        operation,
        schemas,
        inputs=[left.port.edge, right.port.edge],
        outputs=tuple(schemas),
        state_schema=f"({key_text}) -> {kept}",
        state_key=names,
    )


def _check_unmatched(name: str, unmatched: tuple[Unmatched, Unmatched]) -> None:
    for side, what in zip(SIDES, unmatched, strict=True):
        if what not in get_args(Unmatched):
            raise GraphError(
                f"{side}_unmatched must be 'drop', 'null' or 'side'",
                step=name,
                got=repr(what),
                remedy="use one of the three",
                location=user_location(),
            )


def _keys(plan: Plan, name: str, sides: tuple[KeyedPort, KeyedPort]) -> list[StructField]:
    """The parts of the key, named as on the left; those on the right have the same types."""
    found = []
    for side, keyed in zip(SIDES, sides, strict=True):
        if keyed.port.plan is not plan:
            raise GraphError(
                f"the {side} stream is of another job",
                step=name,
                remedy="use streams of this job",
                location=user_location(),
            )
        if not keyed.keys:
            raise GraphError(
                f"the {side} stream has no key",
                step=name,
                remedy='name columns: stream.key_by("column")',
                location=user_location(),
            )
        found.append(key_fields(plan, keyed.port.prototype(), keyed.keys, name))
    left, right = ([f.dataType for f in fields] for fields in found)
    if left != right:
        raise GraphError(
            "the keys of both streams must have the same types",
            step=name,
            expected=", ".join(kind.simpleString().upper() for kind in left),
            got=", ".join(kind.simpleString().upper() for kind in right),
            remedy="cast one of them: CAST(... AS ...)",
            location=user_location(),
        )
    return found[0]


def _check_where(plan: Plan, name: str, where: Expr, pair: StructType) -> None:
    _check_names(name, "where", pair)
    prototype, made = plan.prototype(pair), column(where)
    found = analysed(prototype, name, lambda df: df.select(made.alias("met")), "where")
    problem = jvm.window_problem(found) if jvm.is_chain(prototype, found) else "where aggregates"
    if problem is not None and not problem.endswith("in every row"):
        raise GraphError(
            f"where must be a condition on one left and one right row, but {problem}",
            step=name,
            got=expression_text(where),
            remedy="compare columns of the two rows",
            location=user_location(),
        )
    if not isinstance(found.schema["met"].dataType, BooleanType):
        raise GraphError(
            "where must be a condition",
            step=name,
            expected="BOOLEAN",
            got=found.schema["met"].dataType.simpleString().upper(),
            remedy="compare columns of the two rows",
            location=user_location(),
        )
    plan.note_changing(name, found)


def _taken(plan: Plan, name: str, right: KeyedPort, take: Sequence[Expr]) -> list[StructField]:
    """The columns of the right row that are added."""
    if not take:
        raise GraphError(
            "take is empty",
            step=name,
            remedy="name the right stream's columns to add",
            location=user_location(),
        )
    made = [column(t) for t in take]
    prototype = right.port.prototype()
    found = analysed(prototype, name, lambda df: df.select(*made), "take")
    if not jvm.is_chain(prototype, found):
        raise GraphError(
            "take must be values of one row",
            step=name,
            got=", ".join(map(expression_text, take)),
            remedy="name columns; aggregate or explode in a step before",
            location=user_location(),
        )
    plan.note_changing(name, found)
    return [StructField(f.name, f.dataType) for f in found.schema.fields]


def _check_names(name: str, output: str, schema: StructType) -> None:
    seen: set[str] = set()
    for column_name in schema.names:
        if column_name.lower() in seen:
            raise GraphError(
                f"there would be two columns '{column_name}' in {output}",
                step=name,
                remedy="choose another name with into, or an alias in take or in a select before",
                location=user_location(),
            )
        seen.add(column_name.lower())
