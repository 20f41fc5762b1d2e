"""What `import headgate as hg` shows: every name is there, and completion finds it."""

from __future__ import annotations

import headgate as hg


def test_every_name_is_there_and_listed() -> None:
    for name in hg.__all__:
        assert getattr(hg, name) is not None
    assert set(hg.__all__) <= set(dir(hg)) and "__version__" in dir(hg)


def test_errors_are_caught_by_their_root() -> None:
    errors = [name for name in hg.__all__ if name.endswith("Error")]
    assert "UsageError" in errors and "RefusedError" in errors
    assert all(issubclass(getattr(hg, name), hg.HeadgateError) for name in errors)
