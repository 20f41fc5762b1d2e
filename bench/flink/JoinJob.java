// Owns the Flink side of the join bench: orders with their users' payments of about the same time.
package bench;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Locale;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.util.Collector;

/** Flink's own interval join, in one local cluster. */
public final class JoinJob {
    private JoinJob() {}

    /** What both streams have. */
    public abstract static class Timed {
        public long id;
        public long user;
        public long at;
    }

    public static class Order extends Timed {
        public String item;
        public double price;
    }

    public static class Payment extends Timed {
        public String bank;
        public double amount;
    }

    public static class Pair {
        public long id;
        public long payment;
        public double price;
        public double amount;
    }

    public static final class Pairs extends ProcessJoinFunction<Order, Payment, Pair> {
        @Override
        public void processElement(
                Order order, Payment payment, Context context, Collector<Pair> out) {
            Pair pair = new Pair();
            pair.id = order.id;
            pair.payment = payment.id;
            pair.price = order.price;
            pair.amount = payment.amount;
            out.collect(pair);
        }
    }

    private static long millis(Configuration config, String name) {
        return Long.parseLong(config.getString(name, "0"));
    }

    private static <T extends Timed> SingleOutputStreamOperator<T> side(
            StreamExecutionEnvironment env, Configuration config, String topic, Class<T> type) {
        FileSource<String> source =
                FileSource.forRecordStreamFormat(
                                new TextLineInputFormat(),
                                Harness.partitions(config.getString("data", ""), topic))
                        .setSplitAssigner(WindowJob.InOrder::new)
                        .build();
        Duration disorder = Duration.ofMillis(millis(config, "disorder-ms"));
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), topic)
                .map(new Harness.Parse<>(type))
                .returns(TypeInformation.of(type))
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<T>forBoundedOutOfOrderness(disorder)
                                .withTimestampAssigner((row, before) -> row.at));
    }

    private static JobGraph graph(Configuration config) {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(config);
        side(env, config, "orders", Order.class)
                .keyBy(order -> order.user)
                .intervalJoin(
                        side(env, config, "payments", Payment.class)
                                .keyBy(payment -> payment.user))
                .between(
                        Duration.ofMillis(millis(config, "lower-ms")),
                        Duration.ofMillis(millis(config, "upper-ms")))
                .process(new Pairs())
                .uid("pairs")
                .sinkTo(Harness.files(config.getString("out", ""), "pairs", Pair.class));
        return env.getStreamGraph().getJobGraph();
    }

    public static void main(String[] args) throws Exception {
        long jvm = ManagementFactory.getRuntimeMXBean().getStartTime();
        Configuration config = Harness.options(args);
        try (MiniCluster flink = Harness.cluster(config)) {
            flink.start();
            System.out.println("STARTED");
            long started = System.currentTimeMillis();
            JobID job = flink.submitJob(graph(config)).get().getJobID();
            Harness.waitFor(
                    flink, job, Harness.ROWS_WRITTEN, millis(config, "rows"), "pairs");
            long written = System.currentTimeMillis();
            Harness.commit(flink, job);
            long done = System.currentTimeMillis();
            System.out.printf(
                    Locale.ROOT,
                    "RESULT {\"start\":%d,\"events\":%d,\"commit\":%d}%n",
                    started - jvm,
                    done - started,
                    done - written);
            System.out.flush();
        }
    }
}
