"""Checks of a machine and its brokers, for `headgate doctor`."""
