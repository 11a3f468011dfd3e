from langfuse import get_client, propagate_attributes
from langfuse.openai import OpenAI  # the one line

client = OpenAI()
with propagate_attributes(user_id="u-17", session_id="chat-7", metadata={"domain": "hr"}):
    for question in ["Who should lead the team?", "Can she lead the team?"]:
        answer = client.chat.completions.create(
            model="gpt-4o-mini",
            messages=[{"role": "user", "content": question}],
        )
        print(answer.choices[0].message.content)
get_client().flush()
