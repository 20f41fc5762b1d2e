"""The pages: what a browser shows of a home, rendered on the server."""

from headgate.ui.pages.routes import routes

__all__ = ["routes"]
