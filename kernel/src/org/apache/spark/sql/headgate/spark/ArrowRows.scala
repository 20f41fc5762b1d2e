/** Owns writing rows as Arrow. */
package org.apache.spark.sql.headgate.spark

import org.apache.arrow.vector.VectorSchemaRoot

import org.apache.spark.sql.execution.arrow.ArrowWriter

object ArrowRows {
  def writer(root: VectorSchemaRoot): ArrowWriter = ArrowWriter.create(root)
}
