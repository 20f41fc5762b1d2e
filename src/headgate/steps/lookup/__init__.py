"""Tables, and lookups in them."""

from headgate.steps.lookup.as_of import AsOfStep
from headgate.steps.lookup.changes import ChangesTable, add_changes_table
from headgate.steps.lookup.declared import add_lookup
from headgate.steps.lookup.step import LookupStep, Missing
from headgate.steps.lookup.table import Table, TableStep, add_table
from headgate.steps.lookup.versions import Versions
from headgate.steps.lookup.wait import Wait

__all__ = [
    "AsOfStep",
    "ChangesTable",
    "LookupStep",
    "Missing",
    "Table",
    "TableStep",
    "Versions",
    "Wait",
    "add_changes_table",
    "add_lookup",
    "add_table",
]
