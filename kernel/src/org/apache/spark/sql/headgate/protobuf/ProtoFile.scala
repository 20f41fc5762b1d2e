/** Owns which file of a descriptor has a message: that file is what a registry keeps. */
package org.apache.spark.sql.headgate.protobuf

/** @param bytes the FileDescriptorProto
  * @param imports the files that it names
  * @param path the message's place in the file: the index of the outermost one, then of those within
  */
private[headgate] final case class ProtoFile(bytes: Array[Byte], imports: Seq[String], path: Seq[Int])

private[headgate] object ProtoFile {

  /** The file of a FileDescriptorSet that has the message with this full name. */
  def of(descriptor: Array[Byte], message: String): Option[ProtoFile] = {
    var found: Option[ProtoFile] = None
    val in = new ProtoBytes(descriptor, 0, descriptor.length)
    ProtoTypes.each(in) { case 1 =>
      val file = in.bytes()
      var (space, imports, paths) = ("", Seq.empty[String], Seq.empty[(String, Seq[Int])])
      val parts = new ProtoBytes(file, 0, file.length)
      var index = 0
      ProtoTypes.each(parts) {
        case 2 => space = parts.text() + "."
        case 3 => imports :+= parts.text()
        case 4 =>
          paths ++= parts.limited(messages(parts, "", Seq(index)))
          index += 1
      }
      for ((name, path) <- paths if space + name == message) found = Some(ProtoFile(file, imports, path))
    }
    found
  }

  /** A message and those within, by their names below the package. */
  private def messages(in: ProtoBytes, outer: String, path: Seq[Int]): Seq[(String, Seq[Int])] = {
    var name = ""
    var inner = Seq.empty[Array[Byte]]
    ProtoTypes.each(in) {
      case 1 => name = outer + in.text()
      case 3 => inner :+= in.bytes() // its name may stand before that of the one that it is in
    }
    (name -> path) +: inner.zipWithIndex.flatMap { case (bytes, i) =>
      messages(new ProtoBytes(bytes, 0, bytes.length), s"$name.", path :+ i)
    }
  }
}
