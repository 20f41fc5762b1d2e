// Owns the Flink side of the latency bench: three jobs between topics, run until they are stopped.
package bench;

import bench.Rows.Enriched;
import bench.Rows.Item;
import bench.Rows.Order;
import bench.Rows.OrderUser;
import bench.Rows.User;
import java.time.Duration;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.triggers.CountTrigger;
import org.apache.flink.util.Collector;

/** The jobs `store`, `window` and `process`, as bench/latency_jobs.py has them for Headgate. */
public final class LatencyJob {
    private LatencyJob() {}

    /** What is known of a user after an order: its number and time, and how many there were. */
    public static class Total {
        public long invoiceId;
        public long userId;
        public long n;
        public long createdAt;
    }

    /** Counts, and keeps the newest order. */
    public static final class Newest implements AggregateFunction<Order, Total, Total> {
        @Override
        public Total createAccumulator() {
            return new Total();
        }

        @Override
        public Total add(Order order, Total total) {
            total.n++;
            total.userId = order.userId;
            total.invoiceId = Math.max(total.invoiceId, order.invoiceId);
            total.createdAt = Math.max(total.createdAt, order.createdAt);
            return total;
        }

        @Override
        public Total getResult(Total total) {
            return total;
        }

        @Override
        public Total merge(Total one, Total other) {
            throw new IllegalStateException("tumbling windows are not merged");
        }
    }

    /** The same count without windows, in a function of its own. */
    public static final class Running extends KeyedProcessFunction<Long, Order, Total> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
        }

        @Override
        public void processElement(Order order, Context context, Collector<Total> out)
                throws Exception {
            Long before = count.value();
            Total total = new Total();
            total.invoiceId = order.invoiceId;
            total.userId = order.userId;
            total.createdAt = order.createdAt;
            total.n = before == null ? 1 : before + 1;
            count.update(total.n);
            out.collect(total);
        }
    }

    private static void store(KafkaTopics topics, SingleOutputStreamOperator<Order> orders) {
        SingleOutputStreamOperator<OrderUser> withUser =
                orders.keyBy(o -> o.userId)
                        .connect(topics.read("users", User.class).keyBy(u -> u.id))
                        .process(new LookupJob.UserLookup())
                        .uid("users_lookup");
        SingleOutputStreamOperator<Enriched> enriched =
                withUser.keyBy(r -> r.order.itemId)
                        .connect(topics.read("items", Item.class).keyBy(i -> i.id))
                        .process(new LookupJob.ItemLookup())
                        .uid("items_lookup");
        enriched.sinkTo(topics.write("enriched", Enriched.class));
        withUser.getSideOutput(LookupJob.MISSING_USER)
                .sinkTo(topics.write("missing_users", Order.class));
        enriched.getSideOutput(LookupJob.MISSING_ITEM)
                .sinkTo(topics.write("missing_items", OrderUser.class));
    }

    private static void window(KafkaTopics topics, SingleOutputStreamOperator<Order> orders) {
        KeyedStream<Order, Long> keyed =
                orders.assignTimestampsAndWatermarks(
                                WatermarkStrategy.<Order>forBoundedOutOfOrderness(
                                                Duration.ofSeconds(5))
                                        .withTimestampAssigner((o, before) -> o.createdAt / 1000))
                        .keyBy(o -> o.userId);
        keyed.window(TumblingEventTimeWindows.of(Duration.ofMinutes(1)))
                .trigger(CountTrigger.of(1))
                .aggregate(new Newest())
                .uid("counts")
                .sinkTo(topics.write("totals", Total.class));
    }

    private static void process(KafkaTopics topics, SingleOutputStreamOperator<Order> orders) {
        orders.keyBy(o -> o.userId)
                .process(new Running())
                .uid("running")
                .sinkTo(topics.write("totals", Total.class));
    }

    private static JobGraph graph(Configuration config) {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(config);
        KafkaTopics topics = new KafkaTopics(env, config.getString("servers", ""));
        SingleOutputStreamOperator<Order> orders = topics.read("orders", Order.class);
        String job = config.getString("job", "");
        switch (job) {
            case "store" -> store(topics, orders);
            case "window" -> window(topics, orders);
            case "process" -> process(topics, orders);
            default -> throw new IllegalArgumentException("there is no job " + job);
        }
        return env.getStreamGraph().getJobGraph();
    }

    public static void main(String[] args) throws Exception {
        Configuration config = Harness.options(args);
        long tableRows = Long.parseLong(config.getString("table-rows", "0"));
        try (MiniCluster flink = Harness.cluster(config)) {
            flink.start();
            JobID job = flink.submitJob(graph(config)).get().getJobID();
            while (flink.getJobStatus(job).get() != JobStatus.RUNNING) {
                Thread.sleep(20);
            }
            Harness.waitFor(flink, job, LookupJob.TABLE_ROWS, tableRows, "tables");
            System.out.println("READY");
            // until the bench ends this process; a job that fails says why
            while (!Harness.finished(flink, job)) {
                Thread.sleep(500);
            }
        }
    }
}
