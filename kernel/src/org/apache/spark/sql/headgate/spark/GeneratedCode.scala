/** Owns what Spark's code generator makes for our tasks: projections, predicates, orders, joiners. */
package org.apache.spark.sql.headgate.spark

import java.lang.ref.SoftReference
import java.util.{ArrayDeque, LinkedHashMap}
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{GenerateUnsafeRowJoiner, LazilyGeneratedOrdering, UnsafeRowJoiner}
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.types.{DataType, StructType}

/** An expression with something inside that differs from batch to batch though the expressions are equal:
  * what is generated of it serves one task.
  */
trait DiffersByBatch { self: Expression => }

/**
 * Makes each of these once, and not in every task again: to generate the source alone takes longer than
 * a batch of few rows.
 *
 * What is made has state (a buffer, the row it points at), so a task has it for itself: it takes one
 * that nobody uses, or has one made, and when it has succeeded the next task may take it. They are kept
 * by the run of a query, whose settings never change, and by their expressions. What counts or draws
 * numbers, and what is made outside of a query, serves one task.
 */
object GeneratedCode {

  /** Rows of some columns of others. */
  def projection(of: Seq[Expression], in: Seq[Attribute]): UnsafeProjection =
    projection(of.map(bound(_, in)))

  /** @param of with their references bound */
  def projection(of: Seq[Expression]): UnsafeProjection =
    taken("projection", of)(begun(UnsafeProjection.create(of)))

  def projection(schema: StructType): UnsafeProjection = projection(schema.map(_.dataType).toArray)

  def projection(types: Array[DataType]): UnsafeProjection =
    projection(types.toSeq.zipWithIndex.map { case (t, i) => BoundReference(i, t, nullable = true) })

  /** For what is itself a part of generated code, and so may outlive a task. */
  def unshared(schema: StructType): UnsafeProjection = UnsafeProjection.create(schema)

  /** The same, of expressions whose references are bound. */
  def unshared(of: Seq[Expression]): UnsafeProjection = UnsafeProjection.create(of)

  def unshared(of: Seq[Expression], in: Seq[Attribute]): MutableProjection = MutableProjection.create(of.map(bound(_, in)))

  /** An order whose references are bound. */
  def unsharedSorting(by: Seq[SortOrder]): Ordering[InternalRow] = new LazilyGeneratedOrdering(by)

  def predicate(of: Expression, in: Seq[Attribute]): BasePredicate = {
    val condition = bound(of, in)
    taken("predicate", Seq(condition)) {
      val made = Predicate.create(condition)
      made.initialize(partition)
      made
    }
  }

  /** Writes the columns of other rows into one. */
  def assignment(of: Seq[Expression], in: Seq[Attribute], to: InternalRow): MutableProjection = {
    val columns = of.map(bound(_, in))
    val made = taken("assignment", columns)(begun(MutableProjection.create(columns)))
    made.target(to)
    made
  }

  /** Rows by these columns, the least first. */
  def ordering(by: Seq[Attribute], in: Seq[Attribute]): Ordering[InternalRow] = {
    val columns = by.map(c => SortOrder(bound(c, in), Ascending))
    taken[Ordering[InternalRow]]("ordering", columns)(new LazilyGeneratedOrdering(columns))
  }

  /** Rows in an order that a user wrote. */
  def sorting(by: Seq[SortOrder], in: Seq[Attribute]): Ordering[InternalRow] = {
    val columns = by.map(o => SortOrder(bound(o.child, in), o.direction, o.nullOrdering, Nil))
    taken[Ordering[InternalRow]]("sorting", columns)(new LazilyGeneratedOrdering(columns))
  }

  /** Puts the columns of one row behind those of another. */
  def joiner(left: StructType, right: StructType): UnsafeRowJoiner =
    pooled(Seq("joiner", left, right))(GenerateUnsafeRowJoiner.create(left, right))

  private def bound(e: Expression, in: Seq[Attribute]): Expression = BindReferences.bindReference(e, in) match {
    case named: Alias => named.child // its id may be another one in the next batch
    case other => other
  }

  private def begun[T <: ExpressionsEvaluator](made: T): T = { made.initialize(partition); made }

  private def partition: Int = TaskContext.getPartitionId()

  private def taken[T <: AnyRef](kind: String, of: Seq[Expression])(make: => T): T =
    if (of.forall(lasts)) pooled(kind +: of)(make) else make

  private def lasts(e: Expression): Boolean = e.deterministic && !e.exists {
    case _: DiffersByBatch | _: PlanExpression[_] => true
    case _ => false
  }

  private def pooled[T <: AnyRef](of: Seq[Any])(make: => T): T = {
    val task = TaskContext.get()
    if (task == null || task.getLocalProperty(StreamExecution.QUERY_ID_KEY) == null) make
    else {
      val key = task.getLocalProperty(SparkContext.SPARK_JOB_GROUP_ID) +: of
      val mine = Option(IdleCode.take(key)).getOrElse { IdleCode.made.incrementAndGet(); make }.asInstanceOf[T]
      // one that failed may have stopped in the middle of a row
      task.addTaskCompletionListener[Unit] { t =>
        if (!t.isFailed() && !t.isInterrupted()) IdleCode.put(key, mine)
      }
      mine
    }
  }
}

/** What no task uses now. Those not used for longest make way for others, and all do when memory is short. */
private[headgate] object IdleCode {
  private val Most = 4096
  private val idle = new LinkedHashMap[Seq[Any], ArrayDeque[SoftReference[AnyRef]]](64, 0.75f, true)
  private var count = 0
  /** How many were made, because none was idle. */
  val made = new AtomicLong

  def take(key: Seq[Any]): AnyRef = synchronized {
    val found = idle.get(key)
    var taken: AnyRef = null
    while (taken == null && found != null && !found.isEmpty) {
      taken = found.pop().get()
      count -= 1
    }
    taken
  }

  def put(key: Seq[Any], made: AnyRef): Unit = synchronized {
    idle.computeIfAbsent(key, _ => new ArrayDeque).push(new SoftReference(made))
    count += 1
    while (count > Most || idle.size > Most) {
      val oldest = idle.entrySet.iterator
      count -= oldest.next().getValue.size
      oldest.remove()
    }
  }

  def size: Int = synchronized(count)
}
