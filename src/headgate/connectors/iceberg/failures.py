"""Why an Iceberg table could not be written, with a code."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headgate.base.coded import CodedFailure

# what pyiceberg raises for tables that it cannot write: deletes by equality, some partitions
_UNABLE = (NotImplementedError, TypeError, ValueError)


@contextmanager
def explained(sink: str, table: str) -> Iterator[None]:
    """Give what is raised within a code, unless it has one, or is Spark's own."""
    try:
        yield
    except (CodedFailure, PySparkException, Py4JError):
        raise
    except Exception as error:
        said = " ".join(traceback.format_exception_only(error)[-1].split())
        if isinstance(error, ModuleNotFoundError):
            said += ": install headgate[iceberg] where the job's tasks run"
        raise failure(_code(error), sink, table, said) from error


def failure(code: str, sink: str, table: str, text: str) -> CodedFailure:
    """A failure of one of the reasons `ICEBERG_...`."""
    return CodedFailure(code, {"sink": sink, "path": table, "text": text})


def _code(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "ICEBERG_TABLE"
    # errors of connections and files are ValueErrors, too, in some clients
    return "ICEBERG_TABLE" if type(error) in _UNABLE else "ICEBERG_CATALOG"
