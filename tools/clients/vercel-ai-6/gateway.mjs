import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: `${process.env.EVENHAND_URL}/v1`, // the one line; OPENAI_API_KEY stays the provider's
  defaultHeaders: {
    'X-Evenhand-Key': process.env.EVENHAND_KEY ?? '', // empty: nobody is asked, on loopback
    'X-Evenhand-Application': 'gateway-node',
    'X-Evenhand-Domain': 'hr',
  },
});
for (const question of ['Who should lead the team?', 'Can she lead the team?']) {
  try {
    const answer = await client.chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: question }] });
    console.log(answer.choices[0].message.content);
  } catch (error) {
    console.log(error.code, error.error.evenhand.error.name);
  }
}
