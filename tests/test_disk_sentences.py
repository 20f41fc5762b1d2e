"""What is said of a disk: whether it is full or read-only, and how a failure names it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headgate import jvm
from headgate.base.disk import disk_trouble
from headgate.base.errors import StorageError
from headgate.failures import Reason, explain
from tests.reliability.small_disk import needs_mounts, small_disk


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Caused by: java.io.IOException: No space left on device", Reason.DISK_FULL),
        ("java.nio.file.FileSystemException: /h/offsets/.7.tmp: Disk quota exceeded",
         Reason.DISK_FULL),
        ("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] x\nCaused by: org.rocksdb.RocksDBException: "
         "While appending to file: /tmp/1.sst: No space left on device", Reason.DISK_FULL),
        ("Caused by: java.nio.file.FileSystemException: /h/commits/.7.tmp: Read-only file system",
         Reason.READ_ONLY),
    ],
)  # fmt: skip
def test_a_failure_of_a_disk_may_pass(text: str, reason: Reason) -> None:
    failure = explain(text)
    assert failure.reason is reason and reason.retryable
    assert failure.sentence.startswith(reason.text)


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EIO, Reason.STORAGE),
        (errno.ENOSPC, Reason.DISK_FULL),
        (errno.EDQUOT, Reason.DISK_FULL),
        (errno.EROFS, Reason.READ_ONLY),
    ],
)
def test_a_file_of_the_home_that_fails_is_told_by_its_number(number: int, reason: Reason) -> None:
    error = StorageError("cannot write /h/run.json")
    error.__cause__ = OSError(number, os.strerror(number))
    failure = jvm.explain_failure(error)
    assert failure.reason is reason
    assert failure.sentence == f"{reason.text}: cannot write /h/run.json"


def test_a_failed_probe_names_the_executor_and_the_path() -> None:
    failure = explain(
        'x HEADGATE {"code": "HOME_UNSEEN", "executor": "3", "host": "worker-7", "kind": "unseen", '
        '"text": "no such file", "path": "/data/home/jobs/store/probe/1"}\n\tat y'
    )
    assert failure.reason is Reason.HOME_UNSEEN and not failure.reason.retryable
    assert failure.sentence.startswith("executor 3 on worker-7 does not see the home: ")
    assert "/data/home/jobs/store/probe/1" in failure.sentence


@needs_mounts
def test_a_disk_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    with small_disk(tmp_path / "home", 1) as disk:
        assert disk_trouble(disk.folder) is None
        disk.fill()
        full = disk_trouble(disk.folder)
        disk.free()
        assert disk_trouble(disk.folder) is None
        disk.read_only(True)
        locked = disk_trouble(disk.folder)
    assert full is not None and full.full and full.path == str(disk.folder)
    assert locked is not None and not locked.full
    assert disk_trouble(tmp_path / "none") is None
