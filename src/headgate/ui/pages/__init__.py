"""The pages of the web interface; `routes` gives what is mounted beside REST."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute

from headgate.ui.model import Model


def routes(model: Model, *, read_only: bool) -> Sequence[BaseRoute]:
    """All pages: / and below /ui, and GET /login."""
    return []
