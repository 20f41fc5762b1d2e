"""The notebook of the examples, run in a real kernel; its session is made without Headgate."""

from __future__ import annotations

import ast
import json
import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "visits.ipynb"


@pytest.mark.slow
def test_the_notebook_runs_in_a_session_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as in an environment that was activated
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [_shown(cell) for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]

    first, second, newest, settings = shown[-4:]
    assert "FINISHED" in first["text/html"] and ">100<" in first["text/html"], first
    assert "<td" in second["text/html"] and ">110<" in second["text/html"], second
    truth = {f"U{user}!": 20 for user in range(5)} | {"U1!": 30}
    assert ast.literal_eval(newest["text/plain"]) == truth
    # the user's session has kept its own settings
    partitions, provider = ast.literal_eval(settings["text/plain"])
    assert partitions == "200" and "HDFSBackedStateStoreProvider" in provider
    assert json.loads((tmp_path / "home" / "jobs" / "visits" / "job.json").read_text())


def _shown(cell: Any) -> dict[str, str]:
    results = [output for output in cell.outputs if output.output_type == "execute_result"]
    return dict(results[-1].data) if results else {}
