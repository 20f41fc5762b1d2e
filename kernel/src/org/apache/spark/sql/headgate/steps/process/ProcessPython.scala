package org.apache.spark.sql.headgate.steps.process

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.headgate.spark.PythonSettings
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarBatch, ColumnVector}

/** The rows for Python; `bytes` grows by what each row holds, as nearly as that is known cheaply. */
abstract class Feed extends Iterator[InternalRow] {
  var bytes: Long = 0L
}

/**
 * The function of a process step in a Python worker. Spark's own mapInArrow asks all vectors for their
 * size before each row and copies each row that comes back; here the feed counts, and rows are used
 * where they lie.
 */
final class ProcessPython(task: PythonTask, wire: ProcessWire, settings: PythonSettings)
  extends Serializable {
  private val mostRows = settings.mostRows
  private val mostBytes = settings.mostBytes

  /** What Python gives back; a row is good until the next one is read. */
  def run(feed: Feed): Iterator[InternalRow] = {
    val context = TaskContext.get()
    val columns = wire.from.length
    // Python gets the columns of one struct
    val schema = StructType(Seq(StructField("struct", wire.to)))
    settings.run(task.function, task.resultId, schema, batches(feed), context).flatMap { batch =>
      val struct = batch.column(0).asInstanceOf[ArrowColumnVector]
      val parts: Array[ColumnVector] = Array.tabulate(columns)(struct.getChild(_))
      new ColumnarBatch(parts, batch.numRows()).rowIterator().asScala
    }
  }

  private def batches(feed: Feed): Iterator[Iterator[InternalRow]] = new Iterator[Iterator[InternalRow]] {
    override def hasNext: Boolean = feed.hasNext
    override def next(): Iterator[InternalRow] = new Iterator[InternalRow] {
      private val wrapped = new GenericInternalRow(1)
      private val until = feed.bytes + mostBytes
      private var rows = 0
      override def hasNext: Boolean = rows < mostRows && feed.bytes < until && feed.hasNext
      override def next(): InternalRow = {
        rows += 1
        wrapped.update(0, feed.next())
        wrapped
      }
    }
  }
}
