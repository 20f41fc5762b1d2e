/** Owns the decode step as Python calls it. */
package org.apache.spark.sql.headgate.api

import org.apache.spark.sql.{DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.headgate.spark.Frames
import org.apache.spark.sql.headgate.steps.decode.{Decode, DecodeSpec, RawColumns}

object DecodeApi {

  /** The decoded records of a DataFrame with the raw columns.
    *
    * @param specJson what [[DecodeSpec.parse]] reads; what cannot work is refused here
    */
  def apply(df: ApiFrame, specJson: String): ApiFrame = Frames.session(df).withActive {
    val spec = DecodeSpec.parse(specJson)
    val plan = Frames.plan(df)
    RawColumns.find(plan.output, spec)
    Frames.like(df, Decode(spec, toAttributes(spec.outputSchema), plan))
  }
}
