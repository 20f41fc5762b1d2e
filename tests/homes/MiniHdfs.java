import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A name node and a data node on loopback, until the input ends. Arguments: a folder and a port. */
public class MiniHdfs {
  public static void main(String[] arguments) throws Exception {
    Configuration conf = new Configuration();
    conf.set("hdfs.minidfs.basedir", new File(arguments[0]).getAbsolutePath());
    conf.setBoolean("dfs.permissions.enabled", false);
    MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf)
        .nameNodePort(Integer.parseInt(arguments[1])).numDataNodes(1).build();
    cluster.waitActive();
    System.out.println("ready " + cluster.getURI());
    while (System.in.read() >= 0) { }
    cluster.shutdown(true);
    System.exit(0);
  }
}
