"""What the tests of state share: a job's query on folders of the test, and its state as rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from pyspark.sql import Row, SparkSession

import headgate as hg
from headgate import jvm
from headgate.api.job import JobDef
from headgate.compile import CompiledJob, compile_job
from headgate.compile.sinks import Writer
from headgate.connectors.log.files import Record
from headgate.graph import operator_id
from headgate.state.plain import plain
from headgate.testing.rows import row_of
from headgate.testing.stand_in import StandInJob

STEP = "users_lookup"
OPERATOR = operator_id(STEP)


def users_job(
    users: str = "id BIGINT, name STRING",
    *,
    on: str = "user_id",
    missing: Any = "null",
    columns: str = "",
) -> JobDef:
    @hg.job("state")
    def state(job: hg.Job) -> None:
        table = job.table("users", hg.topic("log:users", schema=users), key="id")
        orders = job.source(
            "orders", hg.topic("log:orders", schema=f"id BIGINT, user_id BIGINT{columns}")
        )
        found = orders.lookup(STEP, table, on=on, into="user", missing=missing)
        found.sink("out", hg.topic("log:out"))
        if isinstance(missing, hg.Wait):
            found.missing.sink("late", hg.topic("log:late"))

    return state


class Query:
    """A job's query with topics in `root` and Spark's folder in `spark_folder`."""

    def __init__(
        self, spark: SparkSession, job: JobDef, root: Path, spark_folder: Path, partitions: int
    ) -> None:
        self.spark = spark
        self.job = StandInJob.of(job, root)
        self.root = root
        self.folder = spark_folder
        self.partitions = partitions
        self.compiled = self._compile()

    def _compile(self) -> CompiledJob:
        self.spark.conf.set("spark.sql.shuffle.partitions", str(self.partitions))
        self.built = self.job.build({}, spark=self.spark)
        return compile_job(self.built, self.spark, parallelism=self.partitions)

    def send(self, source: str, *rows: Mapping[str, Any]) -> Self:
        key = "id" if source == "users" else None
        self.job.source(source).append(
            [Record(json.dumps(r), key=json.dumps(r[key]) if key else None) for r in rows]
        )
        return self

    def delete(self, *ids: int) -> Self:
        self.job.source("users").append([Record(None, key=json.dumps(i)) for i in ids])
        return self

    def start(self) -> Any:
        self.compiled = self._compile()  # a query's plan knows its batch: one plan a start
        return self.compiled.start(
            writer=Writer("state", self.folder.name, "", str(self.folder / "journal")),
            checkpoint=str(self.folder), bounded=True, every=timedelta(seconds=1),
        )  # fmt: skip

    def run(self) -> Self:
        self.start().awaitTermination()
        return self

    def rows(self, sink: str = "out") -> list[dict[str, Any]]:
        edge = self.built.node(sink).step.inputs[0]
        schema = self.built.node(edge.step).schemas[edge.output]
        topic = self.job.sink(sink)
        found = topic.read() if topic.exists() else ()
        return [row_of(r.value, schema) for r in found]

    @property
    def layouts(self) -> list[dict[str, Any]]:
        return jvm.state_layout(self.compiled.frame)[STEP]

    @property
    def batch(self) -> int:
        return max(int(p.name) for p in (self.folder / "commits").iterdir() if p.name.isdigit())

    def ids(self, batch: int | None = None) -> list[list[str]]:
        text = (self.folder / "commits" / str(self.batch if batch is None else batch)).read_text()
        ids: list[list[str]] = json.loads(text.split("\n")[1])["stateUniqueIds"][str(OPERATOR)]
        return ids

    def state(self, store: str = "default", batch: int | None = None) -> list[Row]:
        at = self.batch if batch is None else batch
        number = [layout["name"] for layout in self.layouts].index(store)
        return jvm.state_rows(
            self.spark, folder=str(self.folder), operator_id=OPERATOR,
            layout=self.layouts[number], version=at + 1, ids=[of[number] for of in self.ids(at)],
        ).collect()  # fmt: skip

    def users(self, batch: int | None = None) -> dict[int, Any]:
        """The table as its state has it."""
        found = {r.key["key0"]: plain(r.value["row"]) for r in self.state(batch=batch)}
        return dict(sorted(found.items()))

    def rewritten(
        self,
        folder: Path,
        *,
        job: JobDef | None = None,
        partitions: int | None = None,
        batch: int | None = None,
        empty: bool = False,
    ) -> Query:
        """A query on a folder that goes on after a batch, with its state written anew."""
        at = self.batch if batch is None else batch
        new = Query(self.spark, job or self.job, self.root, folder, partitions or self.partitions)
        for part in ("offsets", "commits"):
            (folder / part).mkdir(parents=True)
        shutil.copy(self.folder / "metadata", folder / "metadata")
        if (self.folder / "sources").exists():
            shutil.copytree(self.folder / "sources", folder / "sources")
        for n in (at - 1, at):
            version, metadata, *lines = (self.folder / "offsets" / str(n)).read_text().split("\n")
            changed = json.loads(metadata)
            changed["conf"]["spark.sql.shuffle.partitions"] = str(new.partitions)
            text = "\n".join([version, json.dumps(changed), *lines])
            (folder / "offsets" / str(n)).write_text(text)
        ids = jvm.rewrite_state(
            self.spark, source=None if empty else str(self.folder), source_version=at + 1,
            source_ids=[] if empty else self.ids(at), operator_id=OPERATOR,
            old=None if empty else self.layouts, new=new.layouts, target=str(folder),
            target_version=at + 1, partitions=new.partitions, step=STEP,
        )  # fmt: skip
        version, commit = (self.folder / "commits" / str(at)).read_text().split("\n")
        committed = json.loads(commit)
        committed["stateUniqueIds"] = {str(OPERATOR): ids}
        text = "\n".join([version, json.dumps(committed)])
        (folder / "commits" / str(at)).write_text(text)
        return new


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with what is in it."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
