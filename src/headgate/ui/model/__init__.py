"""The read model of the web interface: frozen views of what is in the home."""

from headgate.ui.model.model import Model
from headgate.ui.model.view import View

__all__ = ["Model", "View"]
