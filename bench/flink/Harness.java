// Owns what the Flink jobs of the bench share: JSON in and out, the local cluster, the last commit.
package bench;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.SequenceWriter;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.module.blackbird.BlackbirdModule;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.BulkWriter;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.fs.FSDataOutputStream;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;

/** Everything runs in one JVM, so that a static counter can tell how far the sinks are. */
final class Harness {
    static final int PARALLELISM = 2;

    /** Rows that the sinks have taken. */
    static final LongAdder ROWS_WRITTEN = new LongAdder();

    private Harness() {}

    // ---------------------------------------------------------------- JSON in and out

    static ObjectMapper mapper() {
        return JsonMapper.builder()
                .addModule(new BlackbirdModule())
                .defaultPropertyInclusion(JsonInclude.Value.construct(
                        JsonInclude.Include.NON_NULL, JsonInclude.Include.NON_NULL))
                .disable(SerializationFeature.FLUSH_AFTER_WRITE_VALUE)
                .build();
    }

    /** The folders of a topic's partitions. */
    static Path[] partitions(String data, String topic) {
        List<Path> partitions = new ArrayList<>();
        for (java.io.File file : new java.io.File(data, topic).listFiles()) {
            if (file.getName().startsWith("partition-")) {
                partitions.add(new Path(file.toURI()));
            }
        }
        return partitions.toArray(new Path[0]);
    }

    public static final class Parse<T> extends RichMapFunction<String, T> {
        private final Class<T> type;
        private transient ObjectReader reader;

        public Parse(Class<T> type) {
            this.type = type;
        }

        @Override
        public void open(OpenContext context) {
            reader = mapper().readerFor(type);
        }

        @Override
        public T map(String line) throws Exception {
            return reader.readValue(line);
        }
    }

    /**
     * JSON lines through one generator and one buffer a file. A row-format sink would make a system
     * call for each row, as Flink's local output stream is not buffered.
     */
    private static final class JsonLines<T> implements BulkWriter<T> {
        private final OutputStream out;
        private final SequenceWriter writer;

        JsonLines(FSDataOutputStream stream, Class<T> type) throws IOException {
            out = new BufferedOutputStream(stream, 256 * 1024);
            writer = mapper().writerFor(type).withRootValueSeparator("\n").writeValues(out);
        }

        @Override
        public void addElement(T row) throws IOException {
            writer.write(row);
            ROWS_WRITTEN.increment();
        }

        @Override
        public void flush() throws IOException {
            writer.flush();
        }

        @Override
        public void finish() throws IOException {
            writer.flush();
            out.write('\n');
            out.flush();
        }
    }

    static <T> FileSink<T> files(String out, String name, Class<T> type) {
        return FileSink.forBulkFormat(
                        new Path(new java.io.File(out, name).toURI()),
                        stream -> new JsonLines<>(stream, type))
                .withBucketAssigner(new BasePathBucketAssigner<>())
                .build();
    }

    // ---------------------------------------------------------------- the cluster

    /** Options come as `--key=value`: ours (data, out, ...), and any of Flink's own. */
    static Configuration options(String[] args) {
        Configuration config = new Configuration();
        for (String arg : args) {
            int equals = arg.indexOf('=');
            config.setString(arg.substring(2, equals), arg.substring(equals + 1));
        }
        return config;
    }

    static MiniCluster cluster(Configuration config) {
        return new MiniCluster(
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(config)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(PARALLELISM)
                        .withRandomPorts()
                        .build());
    }

    static boolean finished(MiniCluster flink, JobID job) throws Exception {
        JobStatus status = flink.getJobStatus(job).get();
        if (status.isTerminalState() && status != JobStatus.FINISHED) {
            flink.requestJobResult(job)
                    .get()
                    .toJobExecutionResult(Harness.class.getClassLoader());
        }
        return status == JobStatus.FINISHED;
    }

    static void waitFor(MiniCluster flink, JobID job, LongAdder counter, long wanted, String what)
            throws Exception {
        for (int polls = 0; counter.sum() < wanted; polls++) {
            if (polls % 100 == 99) {
                System.out.printf("PROGRESS %s %d%n", what, counter.sum());
                if (finished(flink, job)) {
                    throw new IllegalStateException(
                            "finished with " + counter.sum() + " of " + wanted + " " + what);
                }
            }
            Thread.sleep(10);
        }
    }

    /**
     * Asks for the last checkpoint, which commits the files, as soon as the last row is written,
     * instead of waiting up to five seconds for its turn; comes back when the job has ended.
     */
    static void commit(MiniCluster flink, JobID job) throws Exception {
        while (!finished(flink, job)) {
            // The future of a checkpoint that the job's end overtakes is never completed, and
            // one that comes too early for some task fails: look at the job, ask again.
            CompletableFuture<String> checkpoint = flink.triggerCheckpoint(job);
            do {
                Thread.sleep(5);
            } while (!checkpoint.isDone() && !finished(flink, job));
        }
    }
}
