"""Every kind of step that this process knows, by name. No Spark here: readers of homes ask it.

Headgate's own kinds are there once `headgate.steps` is imported, a user's once their class is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.graph.operation import Operation

KINDS: dict[str, type[Operation]] = {}
