package org.apache.spark.sql.headgate.aggregates

import java.nio.ByteBuffer
import java.util.{ArrayList, Arrays, Collection => JCollection, Comparator, HashSet => JHashSet}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.headgate.planning.Replays
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.ByteArray

/**
 * An aggregate function over rows that were gathered before: each row once, or in the order in which
 * they came. The buffer is those rows, and the function sees them when its value is wanted. So it needs
 * neither Spark's expanded plan for distinct aggregates nor rows that a shuffle gives in order.
 *
 * @param inputs  the columns of a row; the first ones decide its place, unless each row is there once
 * @param of      the function, over references to the columns
 * @param ordered how many columns decide the place; 0: each row is there once
 */
case class Gathered(inputs: Seq[Expression], of: AggregateFunction, ordered: Int,
    mutableAggBufferOffset: Int = 0, inputAggBufferOffset: Int = 0)
  extends TypedImperativeAggregate[JCollection[UnsafeRow]] with Replays {

  override def children: Seq[Expression] = inputs
  override def nullable: Boolean = of.nullable
  override def dataType: DataType = of.dataType
  override def defaultResult: Option[Literal] = of.defaultResult
  override def prettyName: String = of.prettyName

  private def types = inputs.map(_.dataType)
  /** What the buffer has, in words: rows of these types. */
  def buffered: String = types.map(_.simpleString).mkString(if (ordered > 0) "rows(" else "values(", ", ", ")")
  @transient private lazy val project = GeneratedCode.unshared(inputs)
  @transient private lazy val over = new OverRows(of, types)
  @transient private lazy val order = new Gathered.ByValue(types)

  override def createAggregationBuffer(): JCollection[UnsafeRow] =
    if (ordered > 0) new ArrayList[UnsafeRow] else new JHashSet[UnsafeRow]

  override def update(rows: JCollection[UnsafeRow], input: InternalRow): JCollection[UnsafeRow] = {
    val row = project(input)
    if (ordered > 0 || !rows.contains(row)) rows.add(row.copy())
    rows
  }

  override def merge(rows: JCollection[UnsafeRow], others: JCollection[UnsafeRow]): JCollection[UnsafeRow] = {
    rows.addAll(others)
    rows
  }

  override def eval(rows: JCollection[UnsafeRow]): Any = {
    val sorted = rows.toArray(new Array[UnsafeRow](rows.size))
    Arrays.sort(sorted, order)
    over(sorted)
  }

  override def serialize(rows: JCollection[UnsafeRow]): Array[Byte] = {
    var size = 0
    rows.forEach(row => size += 4 + row.getSizeInBytes)
    val bytes = ByteBuffer.allocate(size)
    rows.forEach { row => bytes.putInt(row.getSizeInBytes); bytes.put(row.getBytes) }
    bytes.array
  }

  override def deserialize(stored: Array[Byte]): JCollection[UnsafeRow] = {
    val rows = createAggregationBuffer()
    val bytes = ByteBuffer.wrap(stored)
    while (bytes.hasRemaining) {
      val own = new Array[Byte](bytes.getInt())
      bytes.get(own)
      val row = new UnsafeRow(inputs.length)
      row.pointTo(own, own.length)
      rows.add(row)
    }
    rows
  }

  override def withNewMutableAggBufferOffset(offset: Int): Gathered = copy(mutableAggBufferOffset = offset)
  override def withNewInputAggBufferOffset(offset: Int): Gathered = copy(inputAggBufferOffset = offset)
  override protected def withNewChildrenInternal(made: IndexedSeq[Expression]): Gathered = copy(inputs = made)
}

object Gathered {
  /** By the columns that have an order; rows that are alike in those by their bytes, so that a replay sorts the same. */
  private final class ByValue(types: Seq[DataType]) extends Comparator[UnsafeRow] {
    private val orderable = RowOrdering.createNaturalAscendingOrdering(types.takeWhile(RowOrdering.isOrderable))
    override def compare(a: UnsafeRow, b: UnsafeRow): Int = {
      val byValue = orderable.compare(a, b)
      if (byValue != 0) byValue else ByteArray.compareBinary(a.getBytes, b.getBytes)
    }
  }
}
