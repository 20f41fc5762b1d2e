"""The kinds of steps, one folder each. Python workers import parts of it: keep this file empty."""
