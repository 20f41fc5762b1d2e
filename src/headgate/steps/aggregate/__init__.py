"""Running aggregates: all rows of each key so far, as changes."""

from headgate.steps.aggregate.step import AggregateStep, add_aggregate
from headgate.steps.aggregate.times import Emit

__all__ = ["AggregateStep", "Emit", "add_aggregate"]
