/** Owns the files beside a step's state that say what its stores are: Spark reads them at a start. */
package org.apache.spark.sql.headgate.spark

import java.io.FileNotFoundException
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.state.{StateStore => Store, _}

object StateMetadata {

  /** What Spark keeps about an operator in `state/<operator>/_metadata`. */
  private[spark] def of(operatorId: Long, name: String, stores: Seq[StoreShape],
      partitions: Int): OperatorStateMetadataV1 =
    OperatorStateMetadataV1(OperatorInfoV1(operatorId, name), stores.map { s =>
      val prefix = s.layout match {
        case KeyLayout.Prefix(columns) => columns
        case _ => 0
      }
      StateStoreMetadataV1(s.name, prefix, partitions)
    }.toArray)

  /** The schema files in partition 0 and the operator's own file, as Spark's first batch would write them.
    *
    * @param root the folder of all state
    * @param name of the operator; without one it gets no file
    */
  def write(root: Path, operatorId: Long, name: Option[String], stores: Seq[StoreShape],
      partitions: Int, hadoop: Configuration): Unit = {
    stores.foreach { s =>
      val id = StateStoreId(root.toString, operatorId, 0, s.name)
      remove(StateSchemaCompatibilityChecker.schemaFile(id.storeCheckpointLocation()), hadoop)
      new StateSchemaCompatibilityChecker(StateStoreProviderId(id, UUID.randomUUID()), hadoop)
        .validateAndMaybeEvolveStateSchema(
          List(StateStoreColFamilySchema(
            Store.DEFAULT_COL_FAMILY_NAME, 0, s.keySchema, 0, s.valueSchema)),
          ignoreValueSchema = false, stateSchemaVersion = 2, schemaEvolutionEnabled = false)
    }
    name.foreach { known =>
      val folder = new Path(root, operatorId.toString)
      remove(OperatorStateMetadataV1.metadataFilePath(folder), hadoop)
      OperatorStateMetadataWriter.createWriter(folder, hadoop, 1)
        .write(of(operatorId, known, stores, partitions))
    }
  }

  /** The name of an operator, if it has a file. */
  def nameOf(root: Path, operatorId: Long, hadoop: Configuration): Option[String] = {
    val folder = new Path(root, operatorId.toString)
    try OperatorStateMetadataReader.createReader(folder, hadoop, 1, 0L).read()
      .map(_.operatorInfo.operatorName)
    catch { case _: FileNotFoundException => None }
  }

  private def remove(file: Path, hadoop: Configuration): Unit =
    CheckpointFiles.of(file, hadoop).delete(file)
}
