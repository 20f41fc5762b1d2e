"""Steps without memory: select, where, with_columns, drop, transform and union."""

from headgate.steps.stateless.columns import add_columns_step
from headgate.steps.stateless.transform import add_transform
from headgate.steps.stateless.union import add_union

__all__ = ["add_columns_step", "add_transform", "add_union"]
