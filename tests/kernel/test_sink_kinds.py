"""Kinds of sinks: the kernel's own, and one that a jar of a user's brings."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.connectors.log.files import Record, TopicFiles
from headgate.jvm import jar
from headgate.jvm.gateway import PACKAGE, java_list, kernel_api
from headgate.jvm.java import find_java
from headgate.jvm.spark_jars import find_spark_jars
from tests.kernel.support import decode, read_stream, run, spec

SERVICE = f"META-INF/services/{PACKAGE}.sinks.core.SinkKind"

# Writes the rows of a batch as one file, named by the batch: a file that is there is the marker.
KIND = """package org.example

import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.commit.Marker
import org.apache.spark.sql.headgate.sinks.core._

class NumbersKind extends SinkKind {
  def name = "numbers"
  def options(spec: SpecNode) = NumbersOptions(spec.text("path"))
  def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks = new Numbers(sinks)
}

case class NumbersOptions(path: String) extends SinkOptions
case class Found(numbers: Seq[Long]) extends SinkMessage

class Numbers(sinks: Seq[SinkSpec]) extends JobSinks {
  private def folder(sink: SinkSpec) = Path.of(sink.options.asInstanceOf[NumbersOptions].path)
  def prepare(batch: BatchWrite): TaskPlan = new NumbersPlan
  def commit(
      sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit = {
    val numbers = messages.collect { case Found(some) => some }.flatten.sorted
    val file = folder(sink).resolve(mark.batch.toString)
    if (!Files.exists(file)) Files.writeString(file, numbers.mkString(" "))
    if (numbers.nonEmpty) committed()
  }
  def markers(): Map[Int, Seq[Marker]] = sinks.map { sink =>
    val there = Files.list(folder(sink)).iterator.asScala.map(_.getFileName.toString.toLong)
    sink.number -> there.map(Marker(_)).toSeq
  }.toMap
}

class NumbersPlan extends TaskPlan {
  def open(task: TaskPlace): TaskSinks = (sink: Int) => new NumbersWriter
}

class NumbersWriter extends SinkWriter {
  private val found = scala.collection.mutable.ArrayBuffer.empty[Long]
  def write(row: InternalRow): Unit = found += row.getLong(0)
  def finish(): Unit = ()
  override def messages: Seq[SinkMessage] = Seq(Found(found.toSeq))
  def abort(): Unit = ()
}
"""


@pytest.fixture(scope="module")
def users_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A jar with the kind, compiled as a user would against Spark and the kernel."""
    folder = tmp_path_factory.mktemp("kind")
    (folder / "Numbers.scala").write_text(KIND)
    spark = find_spark_jars(honour_spark_home=False).folder
    path = os.pathsep.join([f"{spark}{os.sep}*", str(jar())])
    command = [str(find_java().executable), "-Xss8m", "-cp", path, "scala.tools.nsc.Main"]
    subprocess.run([*command, "-usejavacp", "-d", ".", "Numbers.scala"], cwd=folder, check=True)
    made = folder / "numbers.jar"
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr(SERVICE, "org.example.NumbersKind\n")
        for file in sorted(folder.rglob("*.class")):
            packed.write(file, file.relative_to(folder).as_posix())
    return made


def test_the_kernel_brings_its_own(spark: SparkSession) -> None:
    there = set(kernel_api(spark, "SinkApi").kinds())
    assert there >= {"console", "delta", "files", "kafka", "log", "pulsar", "python"}


def test_the_jar_names_each_kind_once() -> None:
    with zipfile.ZipFile(jar()) as packed:
        named = packed.read(SERVICE).decode().split()
        classes = set(packed.namelist())
    assert len(set(named)) == len(named) >= 7
    assert {f"{name.replace('.', '/')}.class" for name in named} <= classes


@pytest.mark.slow
def test_a_jar_brings_another(spark: SparkSession, users_jar: Path, tmp_path: Path) -> None:
    kernel_api(spark, "JarApi").addUnlessKnown(
        spark._jsparkSession, "org.example.NumbersKind", java_list(spark, [str(users_jar)])
    )
    topic = TopicFiles(tmp_path / "in")
    topic.create(1)
    topic.append([Record(json.dumps({"id": n})) for n in (3, 1, 2)])
    out = tmp_path / "out"
    out.mkdir()
    frame = decode(read_stream(spark, topic.path), "id BIGINT")
    frame = frame.selectExpr("0 AS __hg_sink", "struct(id) AS r0")
    sinks = spec("r1", {"name": "mine", "kind": "numbers", "path": str(out)})
    run(frame, sinks, tmp_path / "ck")
    assert {file.name: file.read_text() for file in out.iterdir()} == {"0": "1 2 3"}
    committed = json.loads(kernel_api(spark, "SinkApi").committed(sinks))
    assert committed == {"mine": 0}
