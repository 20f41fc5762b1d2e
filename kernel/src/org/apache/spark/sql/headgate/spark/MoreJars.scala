/** Owns bringing jars to a session that runs already. */
package org.apache.spark.sql.headgate.spark

import java.io.File
import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{SparkSession => ApiSession}
import org.apache.spark.util.MutableURLClassLoader

/** A job names its brokers when it is built, and that needs a session: too late for `spark.jars`.
  *
  * The jars go to the class loader that the kernel itself came by, so that its own classes find
  * them, and to every executor, where Spark does the same.
  */
object MoreJars {

  /** Adds the jars unless `className` is there already, from the user's own settings, say. */
  def addUnlessKnown(session: ApiSession, className: String, jars: JList[String]): Unit =
    synchronized {
      val loader = getClass.getClassLoader
      if (!knows(loader, className)) {
        loader match {
          case open: MutableURLClassLoader =>
            jars.asScala.foreach(jar => open.addURL(new File(jar).toURI.toURL))
          case other =>
            throw new IllegalStateException(
              s"jars cannot be added to a ${other.getClass.getName}: name them in spark.jars")
        }
        jars.asScala.foreach(session.sparkContext.addJar)
      }
    }

  def knows(className: String): Boolean = knows(getClass.getClassLoader, className)

  private def knows(loader: ClassLoader, className: String): Boolean =
    try {
      Class.forName(className, false, loader)
      true
    } catch { case _: ClassNotFoundException => false }
}
