"""Addresses of pages, made in one place. Every part is quoted: names come from people."""

from __future__ import annotations

from urllib.parse import quote, urlencode

PREFIX = "/ui"
"""Before all pages, as `/jobs` is the REST interface's."""


def page(*parts: object, **query: object) -> str:
    """The address of a page; query values that are None are left out.

    >>> page("jobs", "my shop", "checkpoints", before=17, run=None)
    '/ui/jobs/my%20shop/checkpoints?before=17'
    """
    path = "/".join(quote(str(part), safe="") for part in parts)
    given = {name: value for name, value in query.items() if value is not None}
    return f"{PREFIX}/{path}" + (f"?{urlencode(given)}" if given else "")
