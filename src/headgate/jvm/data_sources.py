"""Python data sources that are registered in a session."""

from __future__ import annotations

from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from headgate.base.errors import GraphError


def registered_data_source(spark: SparkSession, name: str) -> Any:
    """The class that `spark.dataSource.register` was given, by its name; None if there is none.

    Python keeps no list of them: the session in the JVM has each as bytes.
    """
    known = spark._jsparkSession.sessionState().dataSourceManager()
    if not known.dataSourceExists(name):
        return None
    function = known.lookupDataSource(name).dataSourceCls()
    try:
        return cloudpickle.loads(bytes(function.command().unsafeArray()))
    except Exception as error:  # a large one is a broadcast, which only workers can read
        raise GraphError(
            f"the class of the data source '{name}' cannot be read from the session: {error}",
            remedy="give the class instead of its name",
        ) from error
