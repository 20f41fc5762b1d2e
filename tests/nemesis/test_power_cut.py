"""Power cuts: what was reported is there after one, and the job goes on exactly."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import UsageError
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.files import LocalFiles
from headgate.home.layout import Home
from headgate.runtime.run import run
from headgate.snapshots.savepoints import create_savepoint
from headgate.snapshots.snapshot import find_snapshot
from tests.nemesis.cut_windows import CutWindows
from tests.nemesis.power_cut import CutDisk, empty_files, why_not
from tests.reliability.processes import Cluster

_REASON = why_not()
needs_a_disk = pytest.mark.skipif(_REASON is not None, reason=f"no power cuts: {_REASON}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[CutDisk]:
    with CutDisk(tmp_path / "machine", megabytes=64) as disk:
        yield disk


@needs_a_disk
def test_a_cut_takes_what_nobody_has_synced(disk: CutDisk) -> None:
    (disk.path / "lost").write_text("text")
    assert (disk.path / "lost").read_text() == "text"
    disk.cut([])
    assert not (disk.path / "lost").exists()


@needs_a_disk
def test_what_the_home_writes_links_and_withdraws_stays_so(disk: CutDisk) -> None:
    files = LocalFiles(disk.path / "new" / "home")
    files.write_text("a/b/record.json", "{}")
    (disk.path / "new" / "home" / "state").write_bytes(b"s" * 5000)  # as Spark left it
    files.link("state", "savepoints/one/spark/state")
    files.sync("savepoints/one")
    files.write_text("savepoints/one/manifest.json", "{}")
    files.write_text("savepoints/two/manifest.json", "{}")
    files.withdraw("savepoints/two/manifest.json")
    disk.cut([])
    assert files.read_text("a/b/record.json") == "{}"
    assert files.size("savepoints/one/spark/state") == 5000
    assert files.read_text("savepoints/one/manifest.json") == "{}"
    assert files.read_text("savepoints/two/manifest.json") is None


class Checkpoint:
    """Files of a Spark folder, written as Spark does."""

    def __init__(self, spark: SparkSession, root: Path, durability: str) -> None:
        self.root, self._jvm = root, spark._jvm
        spark.conf.set(jvm.DURABILITY, durability)
        hadoop = spark._jsparkSession.sessionState().newHadoopConf()
        java: Any = spark._jvm
        self._manager = java.org.apache.spark.sql.headgate.commit.FencedFileManager(
            self._at(root), hadoop
        )

    def write(self, path: str) -> None:
        stream = self._manager.createAtomic(self._at(self.root / path), False)
        stream.write(path.encode() * 100)
        stream.close()

    def copy_table(self, path: str) -> None:
        """As Hadoop copies a table of RocksDB: nobody asks the file manager."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(path.encode() * 100)

    def kept(self) -> set[str]:
        """The files that are whole."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        names = {path.relative_to(self.root).as_posix(): path for path in found}
        return {name for name, path in names.items() if path.read_bytes() == name.encode() * 100}

    def _at(self, path: Path) -> Any:
        java: Any = self._jvm
        return java.org.apache.hadoop.fs.Path(f"file:{path}")


@pytest.fixture
def as_before(spark: SparkSession) -> Iterator[None]:
    yield
    spark.conf.unset(jvm.DURABILITY)


@needs_a_disk
@pytest.mark.usefixtures("as_before")
def test_offsets_are_kept_at_once_and_changelogs_with_the_commit(
    spark: SparkSession, disk: CutDisk
) -> None:
    checkpoint = Checkpoint(spark, disk.path / "run" / "spark", "disk")
    first = {"metadata", "offsets/0", *(f"state/7/{p}/1_id.changelog" for p in range(20))}
    for path in sorted(first):
        checkpoint.write(path)
    checkpoint.write("commits/0")
    checkpoint.write("offsets/1")
    disk.cut([])
    assert checkpoint.kept() == {*first, "commits/0", "offsets/1"}
    assert jvm.verify_files(spark, [str(disk.path / "run/spark" / path) for path in first]) == {}


@needs_a_disk
@pytest.mark.usefixtures("as_before")
def test_a_snapshot_is_kept_with_its_tables(spark: SparkSession, disk: CutDisk) -> None:
    checkpoint = Checkpoint(spark, disk.path / "spark", "disk")
    for name in ("SSTs/1.sst", "SSTs/2.sst", "SSTs/.1.sst.crc", "logs/1.log"):
        checkpoint.copy_table(f"state/7/0/{name}")
    checkpoint.write("state/7/0/1_id.zip")
    checkpoint.copy_table("state/7/0/SSTs/3.sst")
    checkpoint.write("state/7/0/2_id.zip")
    disk.cut([])
    tables = {"SSTs/1.sst", "SSTs/2.sst", "SSTs/3.sst", "SSTs/.1.sst.crc", "logs/1.log"}
    assert checkpoint.kept() == {f"state/7/0/{n}" for n in (*tables, "1_id.zip", "2_id.zip")}


@needs_a_disk
@pytest.mark.usefixtures("as_before")
def test_nothing_is_synced_for_a_job_that_need_not_survive_a_cut(
    spark: SparkSession, disk: CutDisk
) -> None:
    checkpoint = Checkpoint(spark, disk.path / "spark", "process")
    for path in ("offsets/0", "state/7/0/1_id.changelog", "state/7/0/1_id.zip", "commits/0"):
        checkpoint.write(path)
    assert "commits/0" in checkpoint.kept()
    disk.cut([])
    assert checkpoint.kept() == set()


class Shop:
    """A job whose home is on the disk and whose topics are not."""

    def __init__(self, spark: SparkSession, disk: CutDisk, data: Path) -> None:
        self._spark, self._disk, self._data = spark, disk, data
        self.home = disk.path / "home"
        self._sent = 0
        for name in ("orders", "users"):
            TopicFiles(data / name).create(2)

    def job(self) -> hg.JobDef:
        @hg.job("shop", checkpoints=hg.Checkpoints(every="100 milliseconds"))
        def shop(job: hg.Job) -> None:
            orders = job.source(
                "orders",
                hg.topic(f"log:{self._data}/orders", schema="id INT, user INT", max_records="40"),
            )
            users = hg.topic(f"log:{self._data}/users", schema="id INT, name STRING")
            found = orders.lookup(
                "by_user", job.table("users", users, key="id"), on="user", into="who"
            )
            found.sink("out", hg.topic(f"log:{self._data}/out"))

        return shop

    def work(self, **options: Any) -> None:
        """Send some rows and run until they are written."""
        if self._sent == 0:
            named = [json.dumps({"id": n, "name": f"user {n}"}) for n in range(50)]
            TopicFiles(self._data / "users").append([Record(text) for text in named])
        rows = range(self._sent, self._sent + 200)
        sent = [Record(json.dumps({"id": n, "user": n % 50})) for n in rows]
        TopicFiles(self._data / "orders").append(sent)
        self._sent += 200
        outcome = run(self.job(), home=str(self.home), bounded=True, spark=self._spark, **options)
        assert outcome.error is None, outcome.error

    def out(self) -> Counter[tuple[int, str]]:
        rows = [json.loads(r.value or "") for r in TopicFiles(self._data / "out").read()]
        return Counter((row["id"], row["who"]["name"]) for row in rows)

    def expected(self, orders: range) -> Counter[tuple[int, str]]:
        return Counter((n, f"user {n % 50}") for n in orders)


@needs_a_disk
@pytest.mark.slow
def test_a_job_its_savepoint_and_a_run_made_of_it_are_kept(
    spark: SparkSession, disk: CutDisk, tmp_path: Path
) -> None:
    shop = Shop(spark, disk, tmp_path / "data")
    shop.work()
    disk.cut([])
    shop.work()
    job = Home(str(shop.home)).job("shop")
    current = job.current()
    assert current is not None
    create_savepoint(current, label="before")
    disk.cut([])
    assert empty_files(shop.home) == []
    assert list(find_snapshot(job.home, "sp:before", "shop").problems()) == []
    shop.work(restore="sp:before", parallelism=3)  # writes the state anew
    disk.cut([])
    shop.work()
    forked = job.current()
    assert forked is not None
    assert (forked.id, forked.read().parallelism) == ("r2", 3)
    assert shop.out() == shop.expected(range(800))


@needs_a_disk
@pytest.mark.slow
def test_windows_on_kafka_are_exact_after_a_cut(
    spark: SparkSession, kafka_servers: str, tmp_path: Path
) -> None:
    soak = CutWindows(tmp_path, kafka_servers, cuts=1, seed=5)
    soak.run()
    soak.assert_truth(spark)


@needs_a_disk
@pytest.mark.long
def test_state_that_executors_wrote_is_kept(
    spark: SparkSession, kafka_servers: str, tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path, workers=2)
    try:
        soak = CutWindows(tmp_path, kafka_servers, cuts=2, seed=6, cluster=cluster)
        soak.run()
    finally:
        cluster.stop()
    soak.assert_truth(spark)


def test_a_durability_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match="durability must be 'disk' or 'process'") as refused:
        hg.Checkpoints(durability="ram")  # type: ignore[arg-type]
    assert "'disk' or 'process'" in str(refused.value)
