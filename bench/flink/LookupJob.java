// Owns the Flink side of the lookup bench: orders enriched with their user and their item.
package bench;

import bench.Rows.Enriched;
import bench.Rows.Item;
import bench.Rows.Order;
import bench.Rows.OrderUser;
import bench.Rows.User;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
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
 */
public final class LookupJob {
    /** Opened when the tables are loaded. */
    private static final CountDownLatch ORDERS_MAY_START = new CountDownLatch(1);

    static final LongAdder TABLE_ROWS = new LongAdder();

    static final OutputTag<Order> MISSING_USER = new OutputTag<>("missing_users") {};
    static final OutputTag<OrderUser> MISSING_ITEM = new OutputTag<>("missing_items") {};

    private LookupJob() {}

    // ---------------------------------------------------------------- the orders' files

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
        FileSource<String> source =
                FileSource.forRecordStreamFormat(lines, Harness.partitions(data, topic)).build();
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), topic)
                .map(new Harness.Parse<>(type))
                .returns(TypeInformation.of(type))
                .name("parse " + topic);
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

        enriched.sinkTo(Harness.files(out, "enriched", Enriched.class));
        withUser.getSideOutput(MISSING_USER).sinkTo(Harness.files(out, "missing_users", Order.class));
        enriched.getSideOutput(MISSING_ITEM).sinkTo(Harness.files(out, "missing_items", OrderUser.class));
        return env.getStreamGraph().getJobGraph();
    }

    public static void main(String[] args) throws Exception {
        long jvm = ManagementFactory.getRuntimeMXBean().getStartTime();
        Configuration config = Harness.options(args);
        String data = config.getString("data", "");
        String out = config.getString("out", "");
        long tableRows = Long.parseLong(config.getString("table-rows", "0"));
        long orders = Long.parseLong(config.getString("orders", "0"));
        try (MiniCluster flink = Harness.cluster(config)) {
            flink.start();
            long started = System.currentTimeMillis();
            JobID job = flink.submitJob(graph(config, data, out)).get().getJobID();

            Harness.waitFor(flink, job, TABLE_ROWS, tableRows, "tables");
            long loaded = System.currentTimeMillis();
            ORDERS_MAY_START.countDown();

            Harness.waitFor(flink, job, Harness.ROWS_WRITTEN, orders, "orders");
            long written = System.currentTimeMillis();
            Harness.commit(flink, job);
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
}
