"""Small files: whole writes, clear errors, locks; the same on a disk, in fsspec and in S3."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from headgate.base.errors import HeadgateError, UsageError
from headgate.home.files import Files, LocalFiles, open_files, read_json, write_json
from tests.homes.hdfs import HdfsServer
from tests.homes.s3 import KEYS, S3Server


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Addresses in a bucket of a real S3 server."""
    server = S3Server(tmp_path_factory.mktemp("s3"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        name = server.bucket("headgate-files")
        yield lambda: server.url(name, f"a/{uuid4().hex}")
    server.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Folders of a real HDFS."""
    server = HdfsServer(tmp_path_factory.mktemp("hdfs"))
    yield lambda: f"{server.url}/a/{uuid4().hex}"
    server.stop()


@pytest.fixture(params=["local", "remote", "s3", pytest.param("hdfs", marks=pytest.mark.long)])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    if request.param in ("s3", "hdfs"):
        place = {"s3": "bucket", "hdfs": "cluster"}[request.param]
        return open_files(request.getfixturevalue(place)())
    return open_files(tmp_path / "home" if request.param == "local" else f"memory://{uuid4().hex}")


def test_a_written_file_is_read_back(files: Files) -> None:
    write_json(files, "a/b.json", {"n": 1, "text": "é"})
    assert read_json(files, "a/b.json") == {"n": 1, "text": "é"}
    write_json(files, "a/b.json", {"n": 2})
    assert read_json(files, "a/b.json") == {"n": 2}


def test_what_is_not_there_is_nothing_and_not_an_error(files: Files) -> None:
    assert read_json(files, "nothing.json") is None
    assert files.list("nothing") == []
    assert not files.exists("nothing")
    files.delete("nothing")


def test_a_listing_is_sorted_and_hides_unfinished_writes(files: Files) -> None:
    for name in ("b", "a", ".hidden"):
        files.write_text(f"folder/{name}", "x")
    assert files.list("folder") == ["a", "b"]


def test_walk_gives_every_file_below(files: Files) -> None:
    for name in ("1/a", "1/2/b"):
        files.write_text(f"top/{name}", "x")
    assert sorted(files.walk("top")) == ["1/2/b", "1/a"]


def test_a_file_is_replaced_only_if_it_is_still_what_was_read(files: Files) -> None:
    assert files.write_if("a/b", "one", None)
    assert not files.write_if("a/b", "two", None)
    found = files.read_versioned("a/b")
    assert found is not None and found[0] == "one"
    assert files.write_if("a/b", "three", found[1])
    assert not files.write_if("a/b", "four", found[1])
    assert files.read_text("a/b") == "three"


def test_marks_of_folders_in_a_bucket_are_no_files(bucket: Callable[[], str]) -> None:
    url = bucket()
    files = open_files(url)
    files.write_text("jobs/store/job.json", "{}")
    place, _, endpoint = url.removeprefix("s3://").partition("?endpoint=")
    for mark in ("", "jobs/", "jobs/store/", "jobs/store/runs/"):  # as other writers leave them
        request = urllib.request.Request(f"{endpoint}/{place}/{mark}", data=b"", method="PUT")
        urllib.request.urlopen(request).read()
    assert files.list("jobs") == ["store"] and files.list("") == ["jobs"]
    assert files.list("jobs/store") == ["job.json", "runs"] and files.list("jobs/store/runs") == []
    assert list(files.walk("")) == ["jobs/store/job.json"]
    assert not files.exists("jobs/store/runs") and files.exists("jobs/store")
    files.delete_tree("jobs")
    assert not files.exists("jobs")


def test_a_copy_within_a_bucket_is_made_by_the_store(bucket: Callable[[], str]) -> None:
    one, other = open_files(bucket()), open_files(bucket())
    one.write_text("a", "text")
    other.receive(one, "a", "deep/b")
    assert other.read_text("deep/b") == "text"
    with other.open("deep/b") as file:
        assert file.read(2) + file.read() == b"text"


def test_a_linked_file_keeps_its_text_when_the_first_is_written_anew(files: Files) -> None:
    files.write_text("a", "old")
    files.link("a", "deep/b")
    files.write_text("a", "new")
    assert files.read_text("deep/b") == "old"


def test_a_link_on_a_disk_takes_no_space(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    files.write_text("a", "x")
    files.link("a", "b")
    assert (tmp_path / "a").stat().st_ino == (tmp_path / "b").stat().st_ino


def test_a_file_url_is_a_local_folder(tmp_path: Path) -> None:
    assert open_files(f"file://{tmp_path}/some%20home").location() == f"{tmp_path}/some home"


def test_a_relative_folder_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_files(".headgate").location("jobs") == str(tmp_path / ".headgate" / "jobs")


def test_an_unknown_kind_of_url_says_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"cannot be opened.*use a folder"):
        open_files("gopher://x/y")


def test_damaged_json_names_the_file(files: Files) -> None:
    files.write_text("job.json", "{")
    with pytest.raises(HeadgateError, match=r"job\.json is not valid JSON.*restore"):
        read_json(files, "job.json")


def test_a_file_that_is_no_text_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_bytes(b"\xff\xfe")
    with pytest.raises(HeadgateError, match=r"job\.json is not valid JSON.*restore") as raised:
        read_json(LocalFiles(tmp_path), "job.json")
    assert raised.value.code == "DAMAGED"


def test_a_file_in_place_of_the_home_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("I am a file")
    files = LocalFiles(tmp_path / "home")
    with pytest.raises(HeadgateError, match=r"file is where a folder should be.*--home"):
        write_json(files, "jobs/a/job.json", {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_home_is_a_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(HeadgateError, match=r"permission denied.*--home or HEADGATE_HOME"):
            write_json(LocalFiles(tmp_path), "jobs/a/job.json", {})
    finally:
        tmp_path.chmod(0o755)


def test_a_permission_error_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(HeadgateError, match=r"cannot write .*a: permission denied"):
        LocalFiles(tmp_path).write_text("a", "x")
    assert list(tmp_path.iterdir()) == [], "the file written aside is gone"


def test_readers_see_whole_files_while_they_are_written(tmp_path: Path) -> None:
    files, stop, torn = LocalFiles(tmp_path), threading.Event(), []
    files.write_text("f", "0" * 50_000)

    def read() -> None:
        while not stop.is_set():
            text = files.read_text("f")
            if text is None or len(text) != 50_000 or len(set(text)) != 1:
                torn.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(50):
        files.write_text("f", str(i % 10) * 50_000)
    stop.set()
    reader.join()
    assert torn == []


def test_a_lock_keeps_other_processes_out_until_it_is_given_back(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    code = (
        "import sys; from headgate.home.files import LocalFiles; from pathlib import Path\n"
        "with LocalFiles(Path(sys.argv[1])).locked('l', timeout=0.3): print('in')"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with files.locked("l") as real:
        assert real
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "has been locked by another process" in refused.stderr
    allowed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert allowed.stdout == "in\n"
