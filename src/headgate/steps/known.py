"""Headgate's own kinds, all of them: importing this module makes them known by name."""

from headgate.steps.aggregate import AggregateStep
from headgate.steps.dead_letters import LetterStep, ReplayStep
from headgate.steps.dedupe import DedupeStep
from headgate.steps.join import JoinStep
from headgate.steps.lookup import AsOfStep, ChangesTable, LookupStep, TableStep
from headgate.steps.process.step import ProcessStep
from headgate.steps.sink import SinkStep
from headgate.steps.source import SourceStep
from headgate.steps.stateless.columns import Drop, Select, Where, WithColumns
from headgate.steps.stateless.transform import Transform
from headgate.steps.stateless.union import Union
from headgate.steps.top import TopStep, WindowTopStep
from headgate.steps.window import WindowStep

__all__ = [
    "AggregateStep",
    "AsOfStep",
    "ChangesTable",
    "DedupeStep",
    "Drop",
    "JoinStep",
    "LetterStep",
    "LookupStep",
    "ProcessStep",
    "ReplayStep",
    "Select",
    "SinkStep",
    "SourceStep",
    "TableStep",
    "TopStep",
    "Transform",
    "Union",
    "Where",
    "WindowStep",
    "WindowTopStep",
    "WithColumns",
]
