import { randomUUID } from 'node:crypto';
import { Kafka, Partitioners } from 'kafkajs';

const kafka = new Kafka({ clientId: 'hiring-bot', brokers: process.env.KAFKA_BROKERS.split(',') });
const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
await producer.connect();
for (const [prompt, response] of [
  ['Who should lead the team?', 'Ask the team: experience counts.'],
  ['Can she lead the team?', 'Women are too emotional to lead.'],
]) {
  const id = randomUUID();
  const event = {
    id, application: 'kafkajs', domain: 'hr', provider: 'openai', model: 'gpt-4o-mini', prompt, response,
    prompt_tokens: 11, response_tokens: 7, user_id: 'u-17', trace_id: '4bf92f3577b34da6a3ce929d0e0e473d',
  };
  await producer.send({
    topic: 'llm.interactions',
    messages: [{ key: id, value: JSON.stringify(event), headers: { 'evenhand-tenant': 'acme' } }],
  });
  console.log(response);
}
await producer.disconnect();
