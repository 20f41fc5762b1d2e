"""``python -m headgate`` is the ``headgate`` command."""

from headgate.cli.entry import main

if __name__ == "__main__":
    main()
