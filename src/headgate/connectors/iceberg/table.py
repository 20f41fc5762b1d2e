"""A table of a catalog: found, made, and given columns that it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from headgate.connectors.iceberg.columns import Fit, fitted, iceberg_schema, partitions
from headgate.connectors.iceberg.failures import failure

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_PROPERTIES = {
    # each batch leaves a file of metadata behind, with all that is known of the table
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


@dataclass(frozen=True)
class LakeTable:
    """The table of one sink."""

    sink: str
    name: str
    catalog: str
    options: Mapping[str, str] = field(repr=False)
    partition_by: Sequence[str] = ()
    evolve: bool = False

    @cached_property
    def _catalog(self) -> Catalog:
        from pyiceberg.catalog import load_catalog

        return load_catalog(self.catalog, **self.options)

    def load(self) -> Table:
        """The table as it is now."""
        return self._catalog.load_table(self.name)

    def find(self) -> Table | None:
        """The table as it is now; None if there is none."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            return self.load()
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def prepared(self, rows: StructType) -> tuple[Table, Any]:
        """The table for these rows, made or given columns if need be, and their Arrow schema."""
        table = self.find()
        if table is None:
            table = self._made(rows)
        fit = fitted(rows, table.schema())
        if fit.lacks and self.evolve and not fit.wrong:
            with table.update_schema() as update:
                update.union_by_name(iceberg_schema(rows))
            table = self.load()
            fit = fitted(rows, table.schema())
        if (wrong := self.misfit(table, fit)) is not None:
            raise failure("ICEBERG_TABLE", self.sink, self.name, wrong)
        return table, fit.arrow

    def misfit(self, table: Table, fit: Fit) -> str | None:
        """Why rows with this fit cannot be written, in words."""
        if fit.wrong:
            return f"these columns do not fit: {', '.join(fit.wrong)}"
        if fit.lacks and not self.evolve:
            return f"the table lacks {', '.join(fit.lacks)}"
        has = [f.name for f in table.spec().fields]
        if self.partition_by and has != list(self.partition_by):
            return f"the table has the partitions {', '.join(has) or 'none'}"
        return None

    def _made(self, rows: StructType) -> Table:
        catalog = self._catalog
        space = self.name.rpartition(".")[0]
        if not catalog.namespace_exists(space):  # who may make tables may not make namespaces
            catalog.create_namespace_if_not_exists(space)
        schema = iceberg_schema(rows)
        return catalog.create_table_if_not_exists(
            self.name,
            schema,
            partition_spec=partitions(schema, self.partition_by),
            properties=_PROPERTIES,
        )
