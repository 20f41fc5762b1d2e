"""The lock between processes: one holder at a time, of either kind, and a word while it waits."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headgate.base.errors import HeadgateError
from headgate.base.locks import file_lock

_HOLD = """
import sys; from pathlib import Path; from headgate.base.locks import file_lock
with file_lock(Path(sys.argv[1]), with_java=sys.argv[2] == "java"):
    print("held", flush=True); sys.stdin.read()
"""


def _holder(path: Path, kind: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path), kind],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("kind", ["flock", "java"])
def test_another_process_waits_until_the_holder_is_gone(tmp_path: Path, kind: str) -> None:
    path, said = tmp_path / "a.lock", []
    other = _holder(path, kind)
    with (
        pytest.raises(HeadgateError, match="has been locked by another process for 0 s"),
        file_lock(path, timeout=0.1, with_java=kind == "java", on_wait=lambda: said.append(1)),
    ):
        pytest.fail("two processes hold one lock")
    assert said == [1]
    other.kill()
    other.wait()
    with file_lock(path, timeout=5, with_java=kind == "java"):
        assert path.exists()


def test_threads_of_one_process_exclude_each_other_with_javas_kind_of_lock(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(200):
            with file_lock(tmp_path / "a.lock", with_java=True):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_files_are_locked_nowhere_else() -> None:
    source = Path(__file__).parents[1] / "src" / "headgate"
    uses = re.compile(r"^\s*(import|from) fcntl\b", re.M)
    found = [p.name for p in source.rglob("*.py") if uses.search(p.read_text(encoding="utf-8"))]
    assert found == ["locks.py"]
