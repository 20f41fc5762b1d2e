/** Owns bringing jars to a running session, as Python calls it. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import org.apache.spark.sql.{SparkSession => ApiSession}
import org.apache.spark.sql.headgate.spark.MoreJars

object JarApi {
  def knows(className: String): Boolean = MoreJars.knows(className)

  /** Adds the jars unless `className` is there already, from the user's own settings, say. */
  def addUnlessKnown(session: ApiSession, className: String, jars: JList[String]): Unit =
    MoreJars.addUnlessKnown(session, className, jars)
}
