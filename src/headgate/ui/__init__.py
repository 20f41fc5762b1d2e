"""The web interface: jobs of a home in a browser and over REST, running, stopped or crashed."""

from headgate.ui.app import create_app

__all__ = ["create_app"]
