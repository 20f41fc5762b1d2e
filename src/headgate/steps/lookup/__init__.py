"""Tables, and lookups in them."""

from headgate.steps.lookup.changes import ChangesTable, add_changes_table
from headgate.steps.lookup.step import LookupStep, Missing, add_lookup
from headgate.steps.lookup.table import Table, TableStep, add_table
from headgate.steps.lookup.wait import Wait

__all__ = [
    "ChangesTable",
    "LookupStep",
    "Missing",
    "Table",
    "TableStep",
    "Wait",
    "add_changes_table",
    "add_lookup",
    "add_table",
]
