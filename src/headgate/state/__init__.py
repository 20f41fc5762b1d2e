"""Reading the state of a run's checkpoints, by step and key; nothing here writes."""

from headgate.state.reader import StateView, read_state

__all__ = ["StateView", "read_state"]
