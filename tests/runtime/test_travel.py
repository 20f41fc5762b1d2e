"""What goes to executors: the modules and packages of a folder, and nothing else of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from headgate.runtime.travel import importable, pack, python_files


def test_modules_and_packages_travel_and_nothing_else(tmp_path: Path) -> None:
    for name in ("app.py", "shop/__init__.py", "shop/prices.py", "shop/deep/__init__.py",
                 "shop/deep/x.py", "shop/.hidden/y.py", "data/rows.py", ".venv/__init__.py",
                 "shop/rows.json"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("X = 7\n")
    found = importable(tmp_path)
    assert sorted(name for _, name in found) == [
        "app.py", "shop/__init__.py", "shop/deep/__init__.py", "shop/deep/x.py", "shop/prices.py",
    ]  # fmt: skip
    first, second = pack("job", found), pack("job", found)
    assert first.name == second.name and first.read_bytes() == second.read_bytes()
    said = subprocess.run(
        [sys.executable, "-S", "-c", "import shop.deep.x as x, app; print(x.X + app.X)"],
        cwd="/", env={"PYTHONPATH": str(first)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.strip() == "14"


def test_a_worker_imports_what_it_needs_with_pyarrow_and_pandas_alone() -> None:
    import headgate

    package = Path(headgate.__file__).parent
    archive = pack("headgate", [(f, f"headgate/{n}") for f, n in python_files(package)])
    code = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in %r:
            raise ModuleNotFoundError(f"refused: {name}")
sys.meta_path.insert(0, Refused())
sys.path.insert(0, %r)
import headgate
assert ".zip" in headgate.__file__, headgate.__file__
import headgate.steps.process.worker, headgate.connectors.python.partitions
"""
    others = ("fsspec", "typer", "rich", "confluent_kafka", "pulsar", "fastapi", "pydantic",
              "starlette", "uvicorn", "jinja2", "prometheus_client", "py4j_none")  # fmt: skip
    said = subprocess.run(
        [sys.executable, "-c", code % (others, str(archive))], capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
