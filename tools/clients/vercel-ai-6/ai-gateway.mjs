import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { streamText } from 'ai';

const openai = createOpenAICompatible({
  name: 'openai', baseURL: `${process.env.EVENHAND_URL}/v1`, apiKey: process.env.OPENAI_API_KEY, includeUsage: true,
  headers: {
    'X-Evenhand-Key': process.env.EVENHAND_KEY ?? '', // empty: nobody is asked, on loopback
    'X-Evenhand-Application': 'vercel-ai-gateway',
    'X-Evenhand-Domain': 'hr',
  },
});
for (const prompt of ['Who should lead the team?', 'Can she lead the team?']) {
  const answer = streamText({ model: openai('gpt-4o-mini'), prompt, onError: () => {} }); // the default writes it to the console
  for await (const part of answer.fullStream) {
    if (part.type === 'text-delta') process.stdout.write(part.text);
    if (part.type === 'finish') process.stdout.write('\n');
    if (part.type === 'error') console.log(JSON.parse(part.error.responseBody).error.code);
  }
}
