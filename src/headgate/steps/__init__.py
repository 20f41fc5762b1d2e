"""One module a kind of step: what a user writes for it, checked as it is written."""
