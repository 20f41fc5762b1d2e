"""Batch: which batch a sink in Python is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

from headgate.connectors.columns import check_stored


@dataclass(frozen=True)
class Batch:
    """A batch for one sink of a job.

    >>> batch = Batch("store", "r1", 7, "store.r1-5f2c.orders-7-9e1a")
    >>> f"INSERT INTO batches VALUES ('{batch.token}')"
    "INSERT INTO batches VALUES ('store.r1-5f2c.orders-7-9e1a')"
    """

    job: str
    run: str
    number: int
    token: str
    """Names the batch for ever: the same when it is replayed, and no other batch's of any run."""

    @staticmethod
    def of(request: Mapping[str, Any]) -> Batch:
        """A batch from the kernel's description."""
        return Batch(request["job"], request["run"], int(request["number"]), request["token"])


def check_staged(rows: StructType) -> None:
    """Raise if rows with these columns cannot be staged for Python."""
    check_stored(rows, "handed to Python")
