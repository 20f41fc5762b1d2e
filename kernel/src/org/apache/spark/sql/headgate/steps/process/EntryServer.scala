package org.apache.spark.sql.headgate.steps.process

import java.io.{BufferedInputStream, BufferedOutputStream, ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream, EOFException}
import java.net.{InetAddress, ServerSocket, Socket, SocketException}
import java.security.SecureRandom

import scala.collection.mutable

import org.apache.arrow.vector.VectorSchemaRoot
import org.apache.arrow.vector.ipc.{ArrowStreamReader, ArrowStreamWriter}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.headgate.spark.ArrowRows
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarBatch, ColumnVector}

/**
 * Gives the Python worker of a task entries of lists and maps that were too large to be sent with
 * their key: one entry by its name, or all. Requests come one after the other, on this machine.
 */
final class EntryServer(stores: Array[EntryStore]) {
  private val keys = mutable.ArrayBuffer.empty[UnsafeRow]
  private val listening = new ServerSocket(0, 1, InetAddress.getLoopbackAddress)
  /** A worker says it first: other users of the machine cannot know it. */
  val secret: Long = new SecureRandom().nextLong()
  def port: Int = listening.getLocalPort

  private val thread = new Thread(() => serve(), s"headgate entries ${TaskContext.getPartitionId()}")
  thread.setDaemon(true)
  thread.start()
  TaskContext.get().addTaskCompletionListener[Unit](_ => listening.close())

  /** A number by which the worker can ask for a key's entries. */
  def register(key: UnsafeRow): Long = keys.synchronized {
    keys += key.copy()
    keys.length - 1L
  }

  private def serve(): Unit =
    try while (true) {
      val socket = listening.accept()
      try answer(socket) catch { case _: EOFException | _: SocketException => } finally socket.close()
    } catch { case _: SocketException => } // the task has ended

  private def answer(socket: Socket): Unit = {
    socket.setTcpNoDelay(true)
    val in = new DataInputStream(new BufferedInputStream(socket.getInputStream))
    val out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream))
    if (in.readLong() == secret) while (true) {
      val store = stores(in.readByte().toInt)
      val number = in.readLong()
      val key = keys.synchronized(keys(number.toInt))
      val wanted = new Array[Byte](in.readInt())
      in.readFully(wanted)
      val entries = if (wanted.isEmpty) store.all(key) else EntryServer.read(wanted, store.partType)(store.one(key, _))
      entries.grouped(EntryServer.Chunk).foreach { some =>
        val bytes = EntryServer.written(some, store.entrySchema)
        out.writeInt(bytes.length)
        out.write(bytes)
      }
      out.writeInt(0)
      out.flush()
    }
  }
}

object EntryServer {
  private val Chunk = 10000

  /** The one value of an Arrow stream with one column; good only while `use` runs. */
  private def read[T](bytes: Array[Byte], dataType: DataType)(use: Any => T): T = {
    val allocator = ArrowUtils.rootAllocator.newChildAllocator("headgate wanted entry", 0, Long.MaxValue)
    val reader = new ArrowStreamReader(new ByteArrayInputStream(bytes), allocator)
    try {
      reader.loadNextBatch()
      val columns: Array[ColumnVector] = Array(new ArrowColumnVector(reader.getVectorSchemaRoot.getVector(0)))
      use(new ColumnarBatch(columns, 1).getRow(0).get(0, dataType))
    } finally { reader.close(); allocator.close() }
  }

  private def written(entries: Seq[(Any, Any)], schema: StructType): Array[Byte] = {
    val allocator = ArrowUtils.rootAllocator.newChildAllocator("headgate entries", 0, Long.MaxValue)
    val root = VectorSchemaRoot.create(ArrowUtils.toArrowSchema(schema, "UTC", true, false), allocator)
    try {
      val writer = ArrowRows.writer(root)
      entries.foreach { case (part, value) => writer.write(InternalRow(part, value)) }
      writer.finish()
      val out = new ByteArrayOutputStream()
      val stream = new ArrowStreamWriter(root, null, out)
      stream.start()
      stream.writeBatch()
      stream.end()
      out.toByteArray
    } finally { root.close(); allocator.close() }
  }
}
