// Owns reading and writing topics of a broker as JSON, exactly once.
package bench;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectWriter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Topics of one broker. */
final class KafkaTopics {
    // Flink's default of an hour is more than a broker allows.
    private static final String TRANSACTION_TIMEOUT_MS = "600000";

    private final StreamExecutionEnvironment env;
    private final String servers;

    KafkaTopics(StreamExecutionEnvironment env, String servers) {
        this.env = env;
        this.servers = servers;
    }

    <T> SingleOutputStreamOperator<T> read(String topic, Class<T> type) {
        KafkaSource<String> source =
                KafkaSource.<String>builder()
                        .setBootstrapServers(servers)
                        .setTopics(topic)
                        .setGroupId("flink-" + topic)
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setValueOnlyDeserializer(new SimpleStringSchema())
                        .build();
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), topic)
                .map(new Harness.Parse<>(type))
                .returns(TypeInformation.of(type))
                .name("parse " + topic);
    }

    <T> KafkaSink<T> write(String topic, Class<T> type) {
        return KafkaSink.<T>builder()
                .setBootstrapServers(servers)
                .setRecordSerializer(new JsonRecords<>(topic, type))
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix("flink-" + topic)
                .setProperty("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
                .build();
    }

    /** A row is a record without a key. */
    private static final class JsonRecords<T> implements KafkaRecordSerializationSchema<T> {
        private final String topic;
        private final Class<T> type;
        private transient ObjectWriter writer;

        JsonRecords(String topic, Class<T> type) {
            this.topic = topic;
            this.type = type;
        }

        @Override
        public void open(
                SerializationSchema.InitializationContext context, KafkaSinkContext sink) {
            writer = Harness.mapper().writerFor(type);
        }

        @Override
        public ProducerRecord<byte[], byte[]> serialize(T row, KafkaSinkContext context, Long time) {
            try {
                return new ProducerRecord<>(topic, writer.writeValueAsBytes(row));
            } catch (JsonProcessingException wrong) {
                throw new IllegalStateException(wrong);
            }
        }
    }
}
