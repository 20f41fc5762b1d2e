/** Owns writing rows in one of Spark's own file formats. */
package org.apache.spark.sql.headgate.spark

import org.apache.hadoop.fs.Path
import org.apache.hadoop.mapred.JobConf
import org.apache.hadoop.mapreduce.{Job, TaskAttemptContext, TaskAttemptID, TaskID, TaskType}
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.{DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{FileFormat, FilePartition, FileScanRDD, OutputWriterFactory, PartitionedFile}
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/** Makes the files of a batch; sent to tasks. */
final class FileOutputs private[spark] (
    schema: StructType, factory: OutputWriterFactory, hadoop: SerializableConfiguration)
  extends Serializable {

  /** What the names of the files end with. */
  def extension(task: Int): String = factory.getFileExtension(context(task))

  def open(file: String, task: Int): FileOutput = factory.newInstance(file, schema, context(task))

  /** A context would make a copy of any other. */
  @transient private lazy val conf = new JobConf(hadoop.value)

  private def context(task: Int): TaskAttemptContext = new TaskAttemptContextImpl(
    conf, new TaskAttemptID(new TaskID("", 0, TaskType.MAP, task), 0))
}

object FileFormats {
  private val made: Map[String, () => FileFormat] = Map(
    "parquet" -> (() => new ParquetFileFormat()),
    "json" -> (() => new JsonFileFormat()),
    "csv" -> (() => new CSVFileFormat()))

  def names: Set[String] = made.keySet

  /** @param format one of `names`
    * @param settings of Spark for these files alone
    */
  def outputs(session: Session, format: String, options: Map[String, String], schema: StructType,
      settings: Map[String, String] = Map.empty): FileOutputs = {
    val job = Job.getInstance(Sessions.hadoop(session, options))
    val factory = made(format)().prepareWrite(session, job, options, schema)
    settings.foreach { case (name, value) => job.getConfiguration.set(name, value) }
    new FileOutputs(schema, factory, new SerializableConfiguration(job.getConfiguration))
  }

  /** Parquet files as rows, one partition a file, in their order: a reader of Spark's own would cut
    * large files and put small ones together.
    *
    * @param files with their sizes
    * @param stored the columns of the files
    * @param schema the same columns, by the names that they are to have
    */
  def parquetRows(session: Session, files: Seq[(Path, Long)], stored: StructType,
      schema: StructType): ApiFrame = {
    val options = Map(FileFormat.OPTION_RETURNING_BATCH -> "false")
    val read = new ParquetFileFormat().buildReaderWithPartitionValues(session, stored,
      new StructType(), stored, Nil, options, Sessions.hadoop(session))
    val partitions = files.zipWithIndex.map { case ((path, size), number) =>
      val whole = PartitionedFile(InternalRow.empty, SparkPath.fromPath(path), 0L, size, Array.empty, 0L, size)
      FilePartition(number, Array(whole))
    }
    Frames.ofRows(session, new FileScanRDD(session, read, partitions, stored), schema)
  }
}
