/** Owns what a logical node says of the state that its step keeps. */
package org.apache.spark.sql.headgate.store

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** A logical node that becomes a stateful operator. */
trait KeepsState { self: LogicalPlan =>
  def step: String
  def stores: Seq[StoreSpec]

  /** What becomes of the state of keys that are one key since they are kept in normal form.
    *
    * @param drops whether what cannot be merged may go
    */
  def keyMerge(drops: Boolean): KeyMerge = KeepOne(drops)
}

object KeepsState {
  /** The stores of every step in a plan, as a JSON object. */
  def layouts(plan: LogicalPlan): String = {
    val json = JsonNodeFactory.instance.objectNode()
    plan.foreach {
      case node: KeepsState =>
        val list = JsonNodeFactory.instance.arrayNode()
        node.stores.foreach(s => list.add(s.toJson))
        // a shared stream stands in the plan once for each of its users
        val before = json.get(node.step)
        require(before == null || before == list, s"two different steps are named ${node.step}")
        json.set[JsonNode](node.step, list)
      case _ =>
    }
    json.toString
  }
}
