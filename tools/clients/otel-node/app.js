const OpenAI = require('openai');

const client = new OpenAI();

async function main() {
  for (const question of ['Who should lead the team?', 'Can she lead the team?']) {
    const answer = await client.chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: question }] });
    console.log(answer.choices[0].message.content);
  }
}
main();
