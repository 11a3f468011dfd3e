from langfuse import get_client, observe, propagate_attributes
from openai import OpenAI

client = OpenAI()


@observe(as_type="generation")
def ask(question):
    answer = client.chat.completions.create(
        model="gpt-4o-mini",
        messages=[{"role": "user", "content": question}],
    )
    get_client().update_current_generation(model=answer.model, usage_details={
        "input": answer.usage.prompt_tokens, "output": answer.usage.completion_tokens,
    })
    return answer.choices[0].message.content


with propagate_attributes(user_id="u-17", session_id="chat-7", metadata={"domain": "hr"}):
    for question in ["Who should lead the team?", "Can she lead the team?"]:
        print(ask(question))
get_client().flush()
