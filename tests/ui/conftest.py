"""The home that tests of the web interface share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.browser import browser
from tests.ui.homes import Homes, homes

__all__ = ["browser"]


# not for the session: one of its jobs runs, and takes its share of the machine until it stops
@pytest.fixture(scope="package")
def made(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Homes]:
    """A home with jobs that run, stopped, crashed, failed and were restored."""
    with homes(tmp_path_factory.mktemp("ui"), spark) as found:
        yield found
