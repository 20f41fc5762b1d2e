"""Reading the state of any snapshot, by step and key; nothing here writes."""

from headgate.state.reader import StateReader, StateView
from headgate.state.shape import ROWS, StateShape

__all__ = ["ROWS", "StateReader", "StateShape", "StateView"]
