import { observeOpenAI } from '@langfuse/openai';
import { LangfuseSpanProcessor } from '@langfuse/otel';
import { propagateAttributes } from '@langfuse/tracing';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import OpenAI from 'openai';

const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'langfuse-js' }),
  spanProcessors: [new LangfuseSpanProcessor()],
});
provider.register();
const client = observeOpenAI(new OpenAI()); // the one line

await propagateAttributes({ userId: 'u-17', sessionId: 'chat-7', metadata: { domain: 'hr' } }, async () => {
  for (const question of ['Who should lead the team?', 'Can she lead the team?']) {
    const answer = await client.chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: question }] });
    console.log(answer.choices[0].message.content);
  }
});
await provider.shutdown(); // sends what waits
