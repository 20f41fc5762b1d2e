"""Every command on homes in S3, as processes of their own, with headgate.toml and Spark's flags."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.brokers.process import free_port
from tests.homes.orders import Orders, in_order
from tests.homes.s3 import KEYS, S3Server

JOB = Path(__file__).with_name("shop.py")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    made = S3Server(tmp_path)
    try:
        yield made
    finally:
        made.stop()


class Project:
    """A folder with headgate.toml, in which commands are run."""

    def __init__(self, folder: Path, server: S3Server, bucket: str) -> None:
        self.folder = folder
        folder.mkdir()
        self.env = {**os.environ, **KEYS, "AWS_ENDPOINT_URL": server.endpoint}
        closed = f"http://127.0.0.1:{free_port()}"
        (folder / "headgate.toml").write_text(
            f'home = "s3://{bucket}/one"\n'
            f"[spark.hadoop.fs.s3a]\nattempts.maximum = 1\nretry.limit = 1\n"
            f'bucket.{bucket}.endpoint = "{closed}"\n'
        )
        endpoint = f"spark.hadoop.fs.s3a.bucket.{bucket}.endpoint={server.endpoint}"
        self.flags = ("--", "--conf", endpoint)

    def ask(self, *words: str, code: int = 0) -> str:
        said = subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", *words],
            cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert said.returncode == code, (words, said.stdout[-2000:], said.stderr[-3000:])
        return said.stdout if code == 0 else said.stderr


@pytest.mark.long
def test_commands_work_on_homes_in_s3_with_the_projects_settings_and_flags(
    server: S3Server, tmp_path: Path
) -> None:
    bucket = server.bucket("homes")
    orders = Orders(tmp_path / "topics", 21)
    orders.send()
    project = Project(tmp_path / "project", server, bucket)
    sets = [word for pair in orders.params.items() for word in ("--set", "=".join(pair))]
    master = ("--master", "local[2]")
    project.ask("run", f"{JOB}:shop", "--bounded", *sets, *project.flags, *master)
    assert orders.written() == in_order(orders.expected)

    assert "shop" in project.ask("list")
    assert json.loads(project.ask("show", "shop", "--json"))["state"] == "FINISHED"
    key, name = next(iter(orders.users.items()))
    get = ("state", "get", "shop", "users_lookup", "--key", f"id={key}", "--json")
    # the file's setting holds, and a flag replaces it
    assert "the object store could not be reached" in project.ask(*get, code=1)
    assert json.loads(project.ask(*get, *project.flags))["state"] == {"row": {"name": name}}
    assert json.loads(project.ask("checkpoint", "verify", "shop", "--json", *project.flags))["ok"]

    project.ask("savepoint", "create", "shop", "--label", "kept")
    two, disk, back = f"s3://{bucket}/two/kept", tmp_path / "kept", f"s3://{bucket}/three/kept"
    project.ask("savepoint", "copy", "shop", "sp:kept", "--to", two)
    project.ask("savepoint", "copy", "shop", two, "--to", str(disk))
    project.ask("savepoint", "copy", "shop", str(disk), "--to", back)
    for place in (two, str(disk), back):
        assert json.loads(project.ask("savepoint", "verify", "shop", place, "--json"))["ok"]
    orders.send()
    again = ("run", f"{JOB}:shop", "--bounded", *sets, "--take-over", "--from", back)
    project.ask(*again, "--home", f"s3://{bucket}/other", *project.flags, *master)
    assert orders.written() == in_order(orders.expected), "it goes on behind the savepoint"

    found = _state_by_ui(project, bucket, server)
    assert found == orders.users


def _state_by_ui(project: Project, bucket: str, server: S3Server) -> dict[int, Any]:
    """The table's rows, as the web interface of the second home gives them."""
    toml = project.folder / "headgate.toml"
    text = toml.read_text()
    (line,) = [one for one in text.splitlines() if one.startswith("bucket.")]
    toml.write_text(text.replace(line, f'bucket.{bucket}.endpoint = "{server.endpoint}"'))
    port = free_port()
    with open(project.folder / "ui.log", "wb") as log:
        ui = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "ui", "--port", str(port), "--home",
             f"s3://{bucket}/other"],
            cwd=project.folder, env=project.env, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        base, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
        while True:
            try:
                (job,) = json.load(urllib.request.urlopen(f"{base}/jobs/overview"))["jobs"]
                break
            except OSError:
                assert time.monotonic() < until and ui.poll() is None
                time.sleep(0.2)
        assert job["name"] == "shop" and job["state"] == "FINISHED"
        rows = json.load(
            urllib.request.urlopen(f"{base}/jobs/shop/state/users_lookup?limit=100", timeout=120)
        )["rows"]
        return {row["key"]["id"]: row["row"]["name"] for row in rows}
    finally:
        ui.terminate()
        ui.wait(30)
