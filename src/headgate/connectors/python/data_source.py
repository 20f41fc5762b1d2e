"""DataSourceSink: a Python data source of PySpark's, written through its stream writer."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict, DataSource, DataSourceStreamWriter
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.base.errors import GraphError
from headgate.base.packing import packed
from headgate.base.secrets import protect_settings, shown
from headgate.connectors.base import Sink, SinkSpec
from headgate.connectors.python.batch import Batch, check_staged
from headgate.connectors.python.data_source_batch import DataSourceBatch
from headgate.connectors.python.errors import UserCodeError
from headgate.connectors.python.partitions import PartitionsWriter
from headgate.failures.user_code import FAILURES
from headgate.jvm.python_sinks import BatchWriter

TOKEN = "headgate.token"
"""The option in which a data source that knows tokens finds that of the batch."""


class DataSourceSink(Sink):
    """A Python data source of PySpark with a stream writer.

    `source` is its class, or the name under which it is registered in the job's session
    (`spark.dataSource.register`). Each batch has its own writer. Delivery is at least once: after a
    crash, a batch may be written and committed again with the same number. Set `exactly_once=True`
    if the writer skips a batch whose token it already has, from the option `headgate.token`.

    >>> class Ledger(DataSource):
    ...     def streamWriter(self, schema, overwrite):
    ...         return LedgerWriter(self.options["path"])
    >>> sink = DataSourceSink(Ledger, options={"path": "ledger", "password": "hunter2"})
    >>> sink.describe(), sink.config()
    ('data_source:Ledger', {'path': 'ledger', 'password': '******'})
    """

    exactly_once: bool = False

    def __init__(
        self,
        source: type[DataSource] | str,
        *,
        options: Mapping[str, str] | None = None,
        exactly_once: bool = False,
    ) -> None:
        if not ((isinstance(source, str) and source) or _is_data_source(source)):
            raise GraphError(
                "source must be a Python data source: its class, or its name",
                expected="a subclass of pyspark.sql.datasource.DataSource, or a text",
                got=repr(source),
                remedy="give the class",
            )
        self.source = source
        self.options = {name: str(value) for name, value in (options or {}).items()}
        self.exactly_once = exactly_once
        self._rows = StructType()
        protect_settings(self.options)

    def describe(self) -> str:
        source = self.source
        return f"data_source:{source if isinstance(source, str) else source.name()}"

    def config(self) -> Mapping[str, Any]:
        return {name: shown(name, value) for name, value in self.options.items()}

    def check(self) -> None:
        source = self.source
        if not isinstance(source, str) and source.streamWriter is DataSource.streamWriter:
            raise GraphError(
                f"the data source {source.name()} has no stream writer",
                expected="def streamWriter(self, schema, overwrite)",
                remedy="write one",
            )

    def check_rows(self, rows: StructType) -> None:
        check_staged(rows)

    def with_rows(self, rows: StructType) -> Sink:
        made = copy.copy(self)
        made._rows = rows
        return made

    def in_session(self, spark: SparkSession) -> Sink:
        if not isinstance(self.source, str):
            return self
        found = jvm.registered_data_source(spark, self.source)
        if not _is_data_source(found):
            raise GraphError(
                f"no Python data source '{self.source}' is registered in the job's session",
                remedy="call spark.dataSource.register(...) before the job is built, or give the"
                " class",
            )
        made = copy.copy(self)
        made.source = found
        return made

    def batch_writer(self, step: str) -> BatchWriter:
        def write(rows: DataFrame, request: Mapping[str, Any]) -> None:
            batch = Batch.of(request)
            try:
                writing = DataSourceBatch(self._stream_writer(batch), self._rows)
                packed(writing)
            except FAILURES as error:
                raise UserCodeError(step, "streamWriter", batch, error) from None
            PartitionsWriter(writing, step)(rows, request)

        return write

    def _stream_writer(self, batch: Batch) -> DataSourceStreamWriter:
        assert not isinstance(self.source, str), "the job's session has given the class"
        token = {TOKEN: batch.token} if self.exactly_once else {}
        made = self.source(CaseInsensitiveDict({**self.options, **token}))
        writer = made.streamWriter(self._rows, overwrite=False)
        if not isinstance(writer, DataSourceStreamWriter):
            raise TypeError(f"it must give a DataSourceStreamWriter, got {type(writer).__name__}")
        return writer

    def spec(self) -> SinkSpec:
        delivery = "exactly_once" if self.exactly_once else "at_least_once"
        return SinkSpec("python", options={"delivery": delivery})


def _is_data_source(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, DataSource)
