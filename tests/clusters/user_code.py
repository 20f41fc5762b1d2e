"""What a user brings along: jars with a function of Spark's SQL, and modules of Python."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from headgate.jvm.java import find_java
from headgate.jvm.spark_jars import find_spark_jars

# A function that the session knows by an extension, and whose class executors must have.
_SCALA = """
package example

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types.{DataType, StringType}
import org.apache.spark.unsafe.types.UTF8String

case class Shout(child: Expression) extends UnaryExpression with CodegenFallback {
  def dataType: DataType = StringType
  override def nullSafeEval(value: Any): Any = UTF8String.fromString(Loud.of(value.toString))
  protected def withNewChildInternal(child: Expression): Expression = copy(child = child)
}

object Loud { def of(text: String): String = text.toUpperCase + "!" }

class Extensions extends (SparkSessionExtensions => Unit) {
  def apply(e: SparkSessionExtensions): Unit = e.injectFunction((FunctionIdentifier("shout"),
    new ExpressionInfo(classOf[Shout].getName, "shout"), (all: Seq[Expression]) => Shout(all.head)))
}
"""


def user_jars(folder: Path) -> tuple[Path, Path]:
    """A jar with the extension `example.Extensions`, and one with what that needs.

    They are compiled by the compiler in Spark's jars.
    """
    source, classes = folder / "Shout.scala", folder / "classes"
    source.write_text(_SCALA)
    classes.mkdir()
    subprocess.run(
        [str(find_java().executable), "-XX:TieredStopAtLevel=1", "-cp",
         f"{find_spark_jars().folder}/*", "scala.tools.nsc.Main", "-usejavacp", "-d", str(classes),
         str(source)],
        check=True,
    )  # fmt: skip
    extension, needed = folder / "extension.jar", folder / "loud.jar"
    with zipfile.ZipFile(extension, "w") as first, zipfile.ZipFile(needed, "w") as second:
        for made in sorted(classes.rglob("*.class")):
            jar = second if made.name.startswith("Loud") else first
            jar.write(made, made.relative_to(classes).as_posix())
    return extension, needed


def maven_repository(folder: Path, jar: Path) -> Path:
    """A repository that has the jar as example:user:1.0."""
    place = folder / "repository" / "example" / "user" / "1.0"
    place.mkdir(parents=True)
    (place / "user-1.0.jar").write_bytes(jar.read_bytes())
    (place / "user-1.0.pom").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>example</groupId><artifactId>user</artifactId><version>1.0</version></project>"
    )
    return folder / "repository"
