"""Tables, and lookups in them."""

from headgate.steps.lookup.step import LookupStep, Missing, add_lookup
from headgate.steps.lookup.table import Table, TableStep, add_table
from headgate.steps.lookup.wait import Wait

__all__ = ["LookupStep", "Missing", "Table", "TableStep", "Wait", "add_lookup", "add_table"]
