"""JobDefinition: a job that can be built, as far as those who run it need to know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from headgate.base.settings import Checkpoints, Restart
from headgate.graph.plan import BuiltJob


@dataclass(frozen=True)
class JobDefinition(ABC):
    """A job's name and settings, and how it is built."""

    name: str
    checkpoints: Checkpoints
    restart: Restart

    @abstractmethod
    def build(
        self,
        params: Mapping[str, str] | None = None,
        *,
        spark: SparkSession | None = None,
        check_connectors: bool = True,
    ) -> BuiltJob:
        """Run the job's function and check the graph. Nothing is read or written."""
