import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { generateText, streamText } from 'ai';

const key = process.env.EVENHAND_KEY; // unset: nobody is asked, on loopback
const exporter = new OTLPTraceExporter({
  url: `${process.env.EVENHAND_URL}/v1/traces`,
  headers: key ? { Authorization: `Bearer ${key}` } : {},
});
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'vercel-ai-6' }),
  spanProcessors: [new BatchSpanProcessor(exporter)],
});
provider.register();

const openai = createOpenAICompatible({
  name: 'openai', baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY, includeUsage: true,
});
const call = (prompt) => ({
  model: openai('gpt-4o-mini'),
  prompt,
  experimental_telemetry: {
    isEnabled: true,
    functionId: 'hiring-bot',
    metadata: { domain: 'hr', userId: 'u-17' },
  },
});
console.log((await generateText(call('Who should lead the team?'))).text);
console.log(await streamText(call('Can she lead the team?')).text);
await provider.shutdown(); // sends what waits
