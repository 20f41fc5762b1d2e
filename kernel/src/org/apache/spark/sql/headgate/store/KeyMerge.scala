/** Owns what becomes of the state of keys that were several and, in normal form, are one. */
package org.apache.spark.sql.headgate.store

import scala.collection.mutable

import org.apache.spark.sql.{DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Cast, UnsafeRow}
import org.apache.spark.sql.headgate.failures.{Coded, CodedArgumentException}
import org.apache.spark.sql.headgate.spark.{Frames, StateStore, StoreShape}
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.ByteArray

/** Writes the stores of a partition whose rows have keys as they came. */
trait KeyMerge extends Serializable {
  protected def put(specs: Seq[StoreSpec], stores: Array[StateStore], rows: Iterator[StoredRow]): Unit

  /** @return how many rows of the main store are in it no more, or as one with others */
  def write(specs: Seq[StoreSpec], stores: Array[StateStore], rows: Iterator[StoredRow]): Long = {
    val main = specs.indexWhere(_.name == StoreShape.DefaultName)
    var came = 0L
    put(specs, stores, rows.map { row => if (row.store == main) came += 1; row })
    val scan = stores(main).iterator()
    try came - scan.size finally scan.close()
  }
}

object KeyMerge {
  /** Two keys with these parts, in normal form, have state that cannot be merged. */
  def refused(spec: StoreSpec, key: UnsafeRow): CodedArgumentException = {
    val cast = spec.partitionBy.map { i =>
      Cast(BoundReference(i, spec.keySchema(i).dataType, nullable = true), StringType).eval(key)
    }
    new CodedArgumentException(Coded("STATE_KEYS", "text" -> ("0.0 and -0.0 are one key now, and so are all " +
      s"NaN, but the state has several of them for ${cast.mkString(", ")}, which cannot be merged")))
  }

  /** As the step says: the rules of each kind are its own. */
  def of(job: ApiFrame, step: String, drops: Boolean): KeyMerge = {
    val node = Option(job).flatMap(Frames.plan(_).collectFirst {
      case k: KeepsState if k.step == step => k
    })
    node.fold[KeyMerge](KeepOne(drops))(_.keyMerge(drops))
  }

  /** A row with its key in normal form; good until the next one. */
  final class Normal(specs: Seq[StoreSpec]) {
    private val keys = specs.map(s => new UnsafeRow(s.keySchema.length)).toArray
    private val values = specs.map(s => new UnsafeRow(s.valueSchema.length)).toArray
    private val projections = specs.map(NormalKeys.projection).toArray
    var key: UnsafeRow = null
    var value: UnsafeRow = null
    var changed = false

    def see(row: StoredRow): Unit = {
      val asCame = keys(row.store)
      row.keyInto(asCame)
      key = projections(row.store)(asCame)
      changed = key != asCame
      value = values(row.store)
      row.valueInto(value)
    }
  }
}

/**
 * A table: of rows whose keys are one now, that of the key which was in normal form before is kept
 * (0.0 and not -0.0), since state does not say which of them is newer. Rows that wait all stay.
 */
case object KeepNormal extends KeyMerge {
  override protected def put(specs: Seq[StoreSpec], stores: Array[StateStore], rows: Iterator[StoredRow]): Unit = {
    val normal = new KeyMerge.Normal(specs)
    rows.foreach { row =>
      normal.see(row)
      val store = stores(row.store)
      if (!normal.changed || store.get(normal.key) == null) store.put(normal.key, normal.value)
    }
  }
}

/**
 * Process functions and windows of a number of rows: what two keys kept cannot be made one. Where it
 * would have to be, the state is refused; or, if state may be dropped, that of the key in normal form
 * is kept, else of the first by its bytes.
 */
case class KeepOne(drops: Boolean) extends KeyMerge {
  override protected def put(specs: Seq[StoreSpec], stores: Array[StateStore], rows: Iterator[StoredRow]): Unit = {
    val normal = new KeyMerge.Normal(specs)
    val alone = specs.map(KeyPartition.columns).toArray // the key without times, numbers and entries
    // the store that has a row for every key that has state
    val known = specs.indexWhere(s => s.partitionBy == s.keySchema.indices)
    val others = mutable.TreeMap.empty[Array[Byte], mutable.ArrayBuffer[StoredRow]](
      (a: Array[Byte], b: Array[Byte]) => ByteArray.compareBinary(a, b))
    rows.foreach { row =>
      normal.see(row)
      if (!normal.changed) stores(row.store).put(normal.key, normal.value)
      else {
        val asCame = new UnsafeRow(specs(row.store).keySchema.length)
        row.keyInto(asCame)
        others.getOrElseUpdate(alone(row.store)(asCame).getBytes, mutable.ArrayBuffer.empty) += row
      }
    }
    others.values.foreach { mine =>
      normal.see(mine.head)
      val key = alone(mine.head.store)(normal.key)
      if (stores(known).get(key) == null) mine.foreach { row =>
        normal.see(row)
        stores(row.store).put(normal.key, normal.value)
      } else if (!drops) throw KeyMerge.refused(specs(known), key)
    }
  }
}
