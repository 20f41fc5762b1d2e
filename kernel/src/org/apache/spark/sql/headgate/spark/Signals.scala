/** Owns the signals of a JVM that has started the job's Python, as that of spark-submit has. */
package org.apache.spark.sql.headgate.spark

import sun.misc.{Signal, SignalHandler}

/** The JVM is the process that a cluster, a pod or a service manager sends SIGTERM to. By itself it would
  * stop Spark in the middle of the batch that Python is about to finish.
  */
object Signals {
  def passOn(python: Long): Unit = {
    Signal.handle(new Signal("TERM"), (_: Signal) => ProcessHandle.of(python).ifPresent(p => p.destroy()))
    // Ctrl-C reaches Python as well, which is in the same group
    Signal.handle(new Signal("INT"), SignalHandler.SIG_IGN)
  }
}
