/** Owns when Spark takes two names for one. */
package org.apache.spark.sql.headgate.spark

import org.apache.spark.sql.internal.SQLConf

object Names {
  def same(one: String, other: String): Boolean = SQLConf.get.resolver(one, other)
}
