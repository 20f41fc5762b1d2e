"""Tools for working on Headgate; not part of the package."""
