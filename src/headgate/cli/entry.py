"""The beginning of the command: Ctrl-C while Python still imports it is no error, either."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; 130 if it is interrupted before it is there."""
    try:
        from headgate.cli.main import main as command_line
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    command_line()
