from openai import OpenAI

client = OpenAI()
for question in ["Who should lead the team?", "Can she lead the team?"]:
    answer = client.chat.completions.create(
        model="gpt-4o-mini",
        messages=[{"role": "user", "content": question}],
    )
    print(answer.choices[0].message.content)
