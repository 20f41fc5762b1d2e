// Owns the Flink side of the windows bench: events counted per user and five minutes.
package bench;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Queue;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.assigners.FileSplitAssigner;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** Tumbling counts as a Flink engineer would write them, in one local cluster. */
public final class WindowJob {
    private WindowJob() {}

    public static class Event {
        public long id;
        public long user;
        public String page;
        public double score;
        public long at;
    }

    public static class UserCount {
        public long user;
        public long start;
        public long end;
        public long n;
    }

    /**
     * Gives out the files in the order in which they were written, so that a reader's event time
     * goes forward; Flink's own assigner gives them in any order, and rows would be late.
     */
    public static final class InOrder implements FileSplitAssigner {
        private final Queue<FileSourceSplit> waiting;

        InOrder(Collection<FileSourceSplit> splits) {
            List<FileSourceSplit> sorted = new ArrayList<>(splits);
            sorted.sort(Comparator.comparingLong(InOrder::written));
            waiting = new ArrayDeque<>(sorted);
        }

        /** A segment's name ends with the time at which it was appended. */
        private static long written(FileSourceSplit split) {
            String name = split.path().getName();
            return Long.parseLong(name.substring(name.lastIndexOf('-') + 1, name.lastIndexOf('.')));
        }

        @Override
        public Optional<FileSourceSplit> getNext(String host) {
            return Optional.ofNullable(waiting.poll());
        }

        @Override
        public void addSplits(Collection<FileSourceSplit> splits) {
            throw new IllegalStateException("the job does not restart, so no file comes back");
        }

        @Override
        public Collection<FileSourceSplit> remainingSplits() {
            return List.copyOf(waiting);
        }
    }

    public static final class Count implements AggregateFunction<Event, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Event event, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }

    public static final class Named
            extends ProcessWindowFunction<Long, UserCount, Long, TimeWindow> {
        @Override
        public void process(
                Long user, Context context, Iterable<Long> counts, Collector<UserCount> out) {
            UserCount row = new UserCount();
            row.user = user;
            row.start = context.window().getStart();
            row.end = context.window().getEnd();
            row.n = counts.iterator().next();
            out.collect(row);
        }
    }

    private static JobGraph graph(Configuration config) {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(config);
        String data = config.getString("data", "");
        FileSource<String> source =
                FileSource.forRecordStreamFormat(
                                new TextLineInputFormat(), Harness.partitions(data, "events"))
                        .setSplitAssigner(InOrder::new)
                        .build();
        Duration disorder = Duration.ofMillis(Long.parseLong(config.getString("disorder-ms", "0")));
        Duration size = Duration.ofMillis(Long.parseLong(config.getString("window-ms", "0")));
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "events")
                .map(new Harness.Parse<>(Event.class))
                .returns(TypeInformation.of(Event.class))
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Event>forBoundedOutOfOrderness(disorder)
                                .withTimestampAssigner((event, before) -> event.at))
                .keyBy(event -> event.user)
                .window(TumblingEventTimeWindows.of(size))
                .aggregate(new Count(), new Named())
                .uid("counts")
                .sinkTo(Harness.files(config.getString("out", ""), "counts", UserCount.class));
        return env.getStreamGraph().getJobGraph();
    }

    public static void main(String[] args) throws Exception {
        long jvm = ManagementFactory.getRuntimeMXBean().getStartTime();
        Configuration config = Harness.options(args);
        long rows = Long.parseLong(config.getString("rows", "0"));
        try (MiniCluster flink = Harness.cluster(config)) {
            flink.start();
            System.out.println("STARTED");
            long started = System.currentTimeMillis();
            JobID job = flink.submitJob(graph(config)).get().getJobID();
            Harness.waitFor(flink, job, Harness.ROWS_WRITTEN, rows, "counts");
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
