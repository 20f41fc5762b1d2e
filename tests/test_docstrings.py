"""The examples in docstrings are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
from pyspark.sql import SparkSession

import headgate

MODULES = sorted(m.name for m in pkgutil.walk_packages(headgate.__path__, "headgate."))


def test_there_are_modules_to_look_at() -> None:
    assert "headgate.api.stream" in MODULES and "headgate.connectors.log.connector" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_right(name: str, spark: SparkSession) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
