"""Reading the state of any snapshot, by step and key; nothing here writes."""

from headgate.state.reader import StateReader, StateView

__all__ = ["StateReader", "StateView"]
