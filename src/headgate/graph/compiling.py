"""What a kind may ask for while its step is made a part of the query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING:
    from headgate.graph.plan import BuiltJob


class Compiling(ABC):
    """A job on its way to one query."""

    built: BuiltJob
    spark: SparkSession
    parallelism: int

    @abstractmethod
    def table(self, name: str) -> DataFrame:
        """The changes of a table, read and shuffled once however many steps use them."""

    @abstractmethod
    def holds_watermark(self, step: str) -> bool:
        """Whether rows that wait in a step hold the watermark of something behind it."""

    def is_read(self, step: str, output: str) -> bool:
        """Whether anything reads an output."""
        return bool(self.built.graph.consumers(step, output))
