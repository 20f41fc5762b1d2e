"""Operation: the questions that every kind of step answers.

The rest of Headgate asks these questions and knows no kind. A kind is a subclass with a `kind`
of its own, in one folder below `steps/`, or in a user's own module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from headgate.connectors.base import Expr, Sink, Source
from headgate.graph.kinds import KINDS

if TYPE_CHECKING:
    from headgate.graph.carried import Carrying
    from headgate.graph.compiling import Compiling
    from headgate.graph.letters import Letters
    from headgate.graph.plan import Node

RawSource: TypeAlias = Source | Callable[[SparkSession], DataFrame]
Transform: TypeAlias = Callable[[DataFrame], DataFrame]
StateView: TypeAlias = Literal["stores", "named"]


class Shape(Enum):
    """How rows go through a step: all that the compiler knows of it. The value is its role."""

    ORIGIN = "source"
    """Rows come from outside."""
    TABLE = "table"
    """Changes from outside that stateful steps read by themselves."""
    STATELESS = "step"
    """Rows to rows, with no memory."""
    STATEFUL = "stateful"
    """Rows of a key meet in one task, with what is kept of the key."""
    SINK = "sink"
    """Rows leave the job."""

    @property
    def role(self) -> str:
        """What the step is to people: source, table, sink or step."""
        return "step" if self is Shape.STATEFUL else self.value


@dataclass(frozen=True)
class Fit:
    """Whether state from an old config still fits a new one.

    >>> class FirstBy(hg.StepKind):
    ...     kind = "first_by"
    ...     def function(self) -> hg.Process: ...
    ...     @classmethod
    ...     def fits(cls, old, new):
    ...         same = old["by"] == new["by"]
    ...         return hg.Fit() if same else hg.Fit(conflicts=("it uses a different column",))
    >>> FirstBy.fits({"by": "id"}, {"by": "name"}).conflicts
    ('it uses a different column',)
    """

    conflicts: tuple[str, ...] = ()
    """Why it does not, each in a sentence."""
    note: str = ""
    """What to know if it does."""


class Operation:
    """What one step does. A subclass with a `kind` is a kind of step."""

    kind: ClassVar[str]
    """The name of the kind in graphs, records and on pages."""
    shape: ClassVar[Shape]
    config_version: ClassVar[int] = 1
    """Raise it when the meaning of the config changes; `fits` gets both configs."""
    state_view: ClassVar[StateView] = "stores"
    """How people see its state: by its stores, or by names that its author declared."""
    one_for_one: ClassVar[bool] = False
    """Whether it gives a row for each row that it gets, so that it need not count."""

    def __init_subclass__(cls) -> None:
        if "kind" in cls.__dict__:
            KINDS[cls.kind] = cls

    # What it is

    def config(self) -> Mapping[str, Any]:
        """What decides identity and whether state fits: plain JSON values, nothing for display."""
        return {}

    def labels(self) -> Mapping[str, str]:
        """What people read about the step; free to be reworded."""
        return {}

    @property
    def source(self) -> RawSource | None:
        """Where it reads, if it does."""
        return None

    @property
    def sink(self) -> Sink | None:
        """Where it writes, if it does."""
        return None

    @property
    def connector(self) -> Source | Sink | None:
        """The connector through which it reads or writes, if it has one."""
        return self.source if isinstance(self.source, Source) else self.sink

    @property
    def address(self) -> str:
        """Where it reads or writes, as people know it."""
        if self.connector is not None:
            return self.connector.describe()
        return "" if self.source is None else "DataFrame"

    def reading(self, source: Source) -> Operation:
        """The same, reading elsewhere: in tests a topic of files stands in for a broker's."""
        raise NotImplementedError(f"{self.kind} does not read")

    def writing(self, sink: Sink) -> Operation:
        """The same, writing elsewhere."""
        raise NotImplementedError(f"{self.kind} does not write")

    # What it needs and what can follow

    @property
    def needs(self) -> tuple[str, ...]:
        """The hidden columns that rows must carry to it."""
        return ()

    @property
    def record_key(self) -> Sequence[str]:
        """The columns that make the key of the records that it reads, if they have one."""
        return ()

    @property
    def takes_changes(self) -> bool:
        """Whether it may read a stream of changes, in which a row may replace one before it."""
        return False

    def check(self) -> None:
        """Raise if what it reads or writes can never be read or written."""

    def keys(self, input: int) -> tuple[Expr, ...]:
        """By what the rows of an input are partitioned."""
        return ()

    @property
    def rows_may_ride(self) -> bool:
        """Whether rows that are bound for a sink may pass through it untouched."""
        return False

    @property
    def places_rows(self) -> bool:
        """Whether its rows are in the partition of their key, if it keeps state."""
        return True

    @property
    def by_event_time(self) -> bool:
        """Whether rows can be too late for it."""
        return False

    @property
    def ends_with_time(self) -> bool:
        """Whether the end of event time (a drain) makes it give rows."""
        return self.by_event_time

    @property
    def needs_ticks(self) -> bool:
        """Whether it may have something to do when no rows come."""
        return self.ends_with_time

    @property
    def holds_rows(self) -> bool:
        """Whether rows may wait in it."""
        return False

    @property
    def holds_watermark(self) -> bool:
        """Whether the watermark of what follows waits for rows that wait in it."""
        return False

    def event_time(self) -> Mapping[str, int | None] | None:
        """What the kernel needs to know of a source's event time: delay and idle_after in ms."""
        return None

    def side_remedy(self, output: str) -> str:
        """What to do to get a side output that the step does not have."""
        return "use a side output that the step has"

    def side_name(self, declared: object) -> str | None:
        """The side output that an object, such as a declared SideOutput, stands for."""
        return None

    def letters(self, output: str) -> Letters | None:
        """How rows of a side output become dead letters, if they are lost where nobody reads it."""
        return None

    @property
    def passes_rows(self) -> bool:
        """Whether its rows are those of its first input as they came, of which it keeps none."""
        return False

    def check_reader(self, node: Node, output: str, reader: str) -> None:
        """Raise if a step cannot read an output."""

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        """Raise if rows of an output do not carry a hidden column. By default: as its input."""
        rows.check_input(0, name)

    # How it becomes a part of the query

    def through(self, node: Node, rows: DataFrame) -> DataFrame:
        """What a stateless step makes of rows."""
        raise NotImplementedError(f"{self.kind} is not stateless")

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        """All rows that the step gives, of all its outputs; `outputs` takes them apart.

        A table gives its changes.
        """
        raise NotImplementedError(f"{self.kind} makes no rows of its own")

    def input_rows(self, node: Node, input: int, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        """The rows of an input, with the key in the columns `keys`, as `frame` gets them."""
        return rows

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        """The rows of each output as users know their columns, and the hidden ones `carried`."""
        raise NotImplementedError(f"{self.kind} has no outputs")

    # How its state goes on

    @property
    def state_names(self) -> Sequence[str] | None:
        """What its author declared that a replay finds again; None if state has no such names."""
        return None

    @property
    def passing_columns(self) -> tuple[str, ...]:
        """Columns of its state that no two runs share: times of the clock, numbers by batch."""
        return ()

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        """Whether state under an old config goes on under a new one; the layouts fit by now.

        `gains` are the columns and stores that the new layout has beside the old one's.
        """
        return Fit()

    @classmethod
    def note_if_new(cls, config: Mapping[str, Any], known_sources: Sequence[str]) -> str:
        """What to know where a snapshot has no state for the step; it has these sources."""
        return ""

    # Homes of the first version

    @classmethod
    def config_1(cls, detail: Mapping[str, str]) -> dict[str, Any]:
        """What `fits` needs of a config, from the `detail` of a graph.json of format 1."""
        return {}

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str] | None:
        """The `detail` that format 1 had for this config; None for kinds that are younger."""
        return None
