/** Owns what a task makes of the schemas of a registry, by their ids. */
package org.apache.spark.sql.headgate.steps.decode

import scala.collection.mutable

import org.apache.spark.sql.headgate.registry.{Registered, Registry, RegistryAccess}

/** What `make` makes of each schema, or why its records are malformed. An id that the registry does not
  * know is asked for once a task: it may be there in the next batch.
  *
  * @param kind of schema that the records must have
  */
private[decode] final class SchemasById[T](
    access: RegistryAccess, kind: String, make: Registered => Either[String, T]) {
  private val registry = Registry.of(access)
  private val made = mutable.HashMap.empty[Int, Either[String, T]]
  private var lastId = -1
  private var last: Either[String, T] = _

  def of(id: Int): Either[String, T] = {
    if (last == null || id != lastId) {
      last = made.getOrElseUpdate(id, ask(id))
      lastId = id
    }
    last
  }

  private def ask(id: Int): Either[String, T] = known(id) match {
    case None => Left(s"the registry has no schema with the id $id")
    case Some(schema) if schema.kind != kind =>
      Left(s"schema $id of the registry is of type ${schema.kind}, not $kind")
    case Some(schema) => make(schema).left.map(why => s"schema $id of the registry $why")
  }

  /** Ids begin at 1: bytes that are no id of any registry are not worth a request. */
  private def known(id: Int): Option[Registered] = if (id <= 0) None else registry.schema(id)
}
