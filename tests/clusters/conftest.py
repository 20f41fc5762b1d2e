"""One cluster for all tests here: its worker has neither Headgate's files nor its packages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headgate
from tests.clusters.bare_python import bare_python
from tests.clusters.user_code import user_jars
from tests.reliability.processes import Cluster
from tests.reliability.small_disk import MOUNTS


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clusters")


@pytest.fixture(scope="session")
def bare(place: Path) -> Path:
    return bare_python(place)


@pytest.fixture(scope="session")
def jars(place: Path) -> tuple[Path, Path]:
    return user_jars(place)


@pytest.fixture(scope="session")
def code(place: Path) -> Path:
    """A folder that the driver sees and the worker does not."""
    (place / "code").mkdir()
    return place / "code"


@pytest.fixture(scope="session")
def cluster(place: Path, code: Path) -> Iterator[Cluster]:
    made = Cluster(place, workers=0)
    try:
        made.add_worker(*((Path(headgate.__file__).parent, code) if MOUNTS else ()))
        yield made
    finally:
        made.stop()
