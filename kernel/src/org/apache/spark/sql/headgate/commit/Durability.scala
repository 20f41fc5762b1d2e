/** Owns the setting of what checkpoint files survive. */
package org.apache.spark.sql.headgate.commit

import org.apache.hadoop.conf.Configuration

/** Whether checkpoint files are to survive a power cut, or only the death of the process. */
object Durability {
  val Key = "spark.headgate.durability"
  private val Process = "process"

  def onDisk(setting: String): Boolean = setting != Process
  def onDisk(hadoop: Configuration): Boolean = onDisk(hadoop.get(Key))
}
