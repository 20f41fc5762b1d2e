"""The documentation site: its pages, made from docs/ and from the code itself."""
