import { ChatOpenAI } from '@langchain/openai';

const model = new ChatOpenAI({
  model: 'gpt-4o-mini',
  configuration: {
    baseURL: `${process.env.EVENHAND_URL}/v1`, // OPENAI_API_KEY stays the provider's
    defaultHeaders: {
      'X-Evenhand-Key': process.env.EVENHAND_KEY ?? '', // empty: nobody is asked, on loopback
      'X-Evenhand-Application': 'langchain-js',
      'X-Evenhand-Domain': 'hr',
    },
  },
});
for (const question of ['Who should lead the team?', 'Can she lead the team?']) {
  try {
    console.log((await model.invoke(question)).content);
  } catch (error) {
    console.log(error.code, error.error.evenhand.error.name);
  }
}
