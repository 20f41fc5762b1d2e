// Owns the Flink side of the lookup bench: orders enriched with their user and their item.
package bench;

import bench.Rows.Enriched;
import bench.Rows.Item;
import bench.Rows.Order;
import bench.Rows.OrderUser;
import bench.Rows.User;
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
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.BulkWriter;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.core.fs.FSDataOutputStream;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Two lookups as a Flink engineer would write them, in one local cluster, tuned for throughput.
 *
 * <p>The tables must be in state before the first order comes, or engines would give different
 * rows, and Flink orders nothing between two inputs. The usual ways (buffer the orders in state, or
 * bootstrap in one job and restore its savepoint in a second) cost Flink writes, a restart and cold
 * code. Here the orders' files are simply not opened until every table row is in state: one job, no
 * buffering, no restore, checkpoints running all the while. The latch is a static field, which only
 * works because source, operators and main share one JVM; that is what makes it the cheapest way,
 * and so the one most favourable to Flink.
 *
 * <p>For the same reason the last checkpoint, which commits the files, is asked for as soon as the
 * last row is written, instead of waiting up to five seconds for its turn.
 */
public final class LookupJob {
    private static final int PARALLELISM = 2;

    /** Opened when the tables are loaded. */
    private static final CountDownLatch ORDERS_MAY_START = new CountDownLatch(1);

    private static final LongAdder TABLE_ROWS = new LongAdder();
    private static final LongAdder ROWS_WRITTEN = new LongAdder();

    private static final OutputTag<Order> MISSING_USER = new OutputTag<>("missing_users") {};
    private static final OutputTag<OrderUser> MISSING_ITEM = new OutputTag<>("missing_items") {};

    private LookupJob() {}

    // ---------------------------------------------------------------- JSON in and out

    private static ObjectMapper mapper() {
        return JsonMapper.builder()
                .addModule(new BlackbirdModule())
                .defaultPropertyInclusion(JsonInclude.Value.construct(
                        JsonInclude.Include.NON_NULL, JsonInclude.Include.NON_NULL))
                .disable(SerializationFeature.FLUSH_AFTER_WRITE_VALUE)
                .build();
    }

    /** Lines of the orders, from files that are not opened before the tables are loaded. */
    public static final class OrderLines extends TextLineInputFormat {
        @Override
        public Reader createReader(Configuration config, FSDataInputStream stream)
                throws IOException {
            // This is the reader's own thread: the task stays free to take checkpoints.
            try {
                ORDERS_MAY_START.await();
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new IOException("stopped before the tables were loaded", stopped);
            }
            return super.createReader(config, stream);
        }
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
    public static final class JsonLines<T> implements BulkWriter<T> {
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

    // ---------------------------------------------------------------- the two lookups

    public static final class UserLookup
            extends KeyedCoProcessFunction<Long, Order, User, OrderUser> {
        private transient ValueState<User> users;

        @Override
        public void open(OpenContext context) {
            users = getRuntimeContext().getState(new ValueStateDescriptor<>("user", User.class));
        }

        @Override
        public void processElement1(Order order, Context context, Collector<OrderUser> out)
                throws Exception {
            User user = users.value();
            if (user == null) {
                context.output(MISSING_USER, order);
                return;
            }
            OrderUser row = new OrderUser();
            row.order = order;
            row.user = user;
            out.collect(row);
        }

        @Override
        public void processElement2(User user, Context context, Collector<OrderUser> out)
                throws Exception {
            users.update(user);
            TABLE_ROWS.increment();
        }
    }

    public static final class ItemLookup
            extends KeyedCoProcessFunction<Long, OrderUser, Item, Enriched> {
        private transient ValueState<Item> items;

        @Override
        public void open(OpenContext context) {
            items = getRuntimeContext().getState(new ValueStateDescriptor<>("item", Item.class));
        }

        @Override
        public void processElement1(OrderUser in, Context context, Collector<Enriched> out)
                throws Exception {
            Item item = items.value();
            if (item == null) {
                context.output(MISSING_ITEM, in);
                return;
            }
            Enriched row = new Enriched();
            row.invoiceId = in.order.invoiceId;
            row.lineItemId = in.order.lineItemId;
            row.user = in.user;
            row.item = item;
            row.createdAt = in.order.createdAt;
            row.paidAt = in.order.paidAt;
            out.collect(row);
        }

        @Override
        public void processElement2(Item item, Context context, Collector<Enriched> out)
                throws Exception {
            items.update(item);
            TABLE_ROWS.increment();
        }
    }

    // ---------------------------------------------------------------- the job

    private static <T> SingleOutputStreamOperator<T> rows(
            StreamExecutionEnvironment env,
            String data,
            String topic,
            TextLineInputFormat lines,
            Class<T> type) {
        List<Path> partitions = new ArrayList<>();
        for (java.io.File file : new java.io.File(data, topic).listFiles()) {
            if (file.getName().startsWith("partition-")) {
                partitions.add(new Path(file.toURI()));
            }
        }
        FileSource<String> source =
                FileSource.forRecordStreamFormat(lines, partitions.toArray(new Path[0])).build();
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), topic)
                .map(new Parse<>(type))
                .returns(TypeInformation.of(type))
                .name("parse " + topic);
    }

    private static <T> FileSink<T> files(String out, String name, Class<T> type) {
        return FileSink.forBulkFormat(
                        new Path(new java.io.File(out, name).toURI()),
                        stream -> new JsonLines<>(stream, type))
                .withBucketAssigner(new BasePathBucketAssigner<>())
                .build();
    }

    private static JobGraph graph(Configuration config, String data, String out) {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(config);
        SingleOutputStreamOperator<Order> orders =
                rows(env, data, "orders", new OrderLines(), Order.class);
        SingleOutputStreamOperator<User> users =
                rows(env, data, "users", new TextLineInputFormat(), User.class);
        SingleOutputStreamOperator<Item> items =
                rows(env, data, "items", new TextLineInputFormat(), Item.class);

        SingleOutputStreamOperator<OrderUser> withUser =
                orders.keyBy(o -> o.userId)
                        .connect(users.keyBy(u -> u.id))
                        .process(new UserLookup())
                        .uid("users_lookup");
        SingleOutputStreamOperator<Enriched> enriched =
                withUser.keyBy(r -> r.order.itemId)
                        .connect(items.keyBy(i -> i.id))
                        .process(new ItemLookup())
                        .uid("items_lookup");

        enriched.sinkTo(files(out, "enriched", Enriched.class));
        withUser.getSideOutput(MISSING_USER).sinkTo(files(out, "missing_users", Order.class));
        enriched.getSideOutput(MISSING_ITEM).sinkTo(files(out, "missing_items", OrderUser.class));
        return env.getStreamGraph().getJobGraph();
    }

    /** Options come as `--key=value`: ours (data, out, ...), and any of Flink's own. */
    private static Configuration options(String[] args) {
        Configuration config = new Configuration();
        for (String arg : args) {
            int equals = arg.indexOf('=');
            config.setString(arg.substring(2, equals), arg.substring(equals + 1));
        }
        return config;
    }

    public static void main(String[] args) throws Exception {
        long jvm = ManagementFactory.getRuntimeMXBean().getStartTime();
        Configuration config = options(args);
        String data = config.getString("data", "");
        String out = config.getString("out", "");
        long tableRows = Long.parseLong(config.getString("table-rows", "0"));
        long orders = Long.parseLong(config.getString("orders", "0"));
        MiniClusterConfiguration cluster =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(config)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(PARALLELISM)
                        .withRandomPorts()
                        .build();
        try (MiniCluster flink = new MiniCluster(cluster)) {
            flink.start();
            long started = System.currentTimeMillis();
            JobID job = flink.submitJob(graph(config, data, out)).get().getJobID();

            waitFor(flink, job, TABLE_ROWS, tableRows, "tables");
            long loaded = System.currentTimeMillis();
            ORDERS_MAY_START.countDown();

            waitFor(flink, job, ROWS_WRITTEN, orders, "orders");
            long written = System.currentTimeMillis();
            while (!finished(flink, job)) {
                // The future of a checkpoint that the job's end overtakes is never completed, and
                // one that comes too early for some task fails: look at the job, ask again.
                CompletableFuture<String> checkpoint = flink.triggerCheckpoint(job);
                do {
                    Thread.sleep(5);
                } while (!checkpoint.isDone() && !finished(flink, job));
            }
            long done = System.currentTimeMillis();
            System.out.printf(
                    Locale.ROOT,
                    "RESULT {\"start\":%d,\"tables\":%d,\"orders\":%d,\"commit\":%d}%n",
                    started - jvm,
                    loaded - started,
                    done - loaded,
                    done - written);
            System.out.flush();
        }
    }

    private static boolean finished(MiniCluster flink, JobID job) throws Exception {
        JobStatus status = flink.getJobStatus(job).get();
        if (status.isTerminalState() && status != JobStatus.FINISHED) {
            flink.requestJobResult(job)
                    .get()
                    .toJobExecutionResult(LookupJob.class.getClassLoader());
        }
        return status == JobStatus.FINISHED;
    }

    private static void waitFor(
            MiniCluster flink, JobID job, LongAdder counter, long wanted, String what)
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
}
