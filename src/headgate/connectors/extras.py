"""Packages that only some addresses need, and the sentence for machines that lack them."""

from __future__ import annotations

import importlib.util
from typing import Literal

from headgate.base.errors import UsageError

Extra = Literal["iceberg", "kafka", "pulsar"]
_PACKAGES = {
    "iceberg": ("pyiceberg", "pyiceberg"),
    "kafka": ("confluent_kafka", "confluent-kafka"),
    "pulsar": ("pulsar", "pulsar-client"),
}


def has_extra(name: Extra) -> bool:
    """Whether the client that an extra brings is installed.

    >>> has_extra("kafka")
    True
    """
    return importlib.util.find_spec(_PACKAGES[name][0]) is not None


def need_extra(name: Extra, what: str) -> None:
    """Raise unless the client that an extra brings is installed.

    >>> need_extra("pulsar", "the source pulsar://localhost:6650/orders")
    """
    if not has_extra(name):
        raise UsageError(
            f"{what} needs the Python package {_PACKAGES[name][1]}",
            remedy=f"pip install 'headgate[{name}]'",
        )
