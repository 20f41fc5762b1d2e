/** Owns giving a value as it is. */
package org.apache.spark.sql.headgate.steps.decode

import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.headgate.json.Utf8
import org.apache.spark.unsafe.types.UTF8String

/** The one column has the value's bytes; an UnsafeRow keeps STRING and BINARY alike.
  *
  * @param mustBeText the bytes go to a STRING column, which must not hold anything but UTF-8
  */
final class RawValue(mustBeText: Boolean) extends ValueDecoder {
  override def takesNull: Boolean = true

  override def write(value: UTF8String, out: UnsafeRowWriter): Boolean = {
    if (mustBeText && !Utf8.isValid(value)) return false
    out.write(0, value)
    true
  }

  /** Only what [[write]] refused comes here. */
  override def read(value: UTF8String, out: Array[Any]): String = ValueDecoder.NotText
}
