import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.StringSerializer;

public class Producer {
    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", System.getenv("KAFKA_BROKERS"), "acks", "all");
        List<String[]> calls = List.of(
            new String[] {"Who should lead the team?", "Ask the team: experience counts."},
            new String[] {"Can she lead the team?", "Women are too emotional to lead."});
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (String[] call : calls) {
                String id = UUID.randomUUID().toString();
                String event = """
                    {"id": "%s", "application": "kafka-java", "domain": "hr", "provider": "openai", "model": "gpt-4o-mini",
                     "prompt": "%s", "response": "%s", "prompt_tokens": 11, "response_tokens": 7, "user_id": "u-17",
                     "trace_id": "4bf92f3577b34da6a3ce929d0e0e473c"}""".formatted(id, call[0], call[1]);
                var record = new ProducerRecord<String, String>("llm.interactions", id, event);
                record.headers().add(new RecordHeader("evenhand-tenant", "acme".getBytes(StandardCharsets.UTF_8)));
                producer.send(record).get();
                System.out.println(call[1]);
            }
        }
    }
}
