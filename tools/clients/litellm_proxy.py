import os

from openai import BadRequestError, OpenAI

client = OpenAI(base_url=os.environ["LITELLM_URL"], api_key=os.environ["LITELLM_MASTER_KEY"])
for question in ["Who should lead the team?", "Can she lead the team?"]:
    try:
        answer = client.chat.completions.create(
            model="gpt-4o-mini",
            messages=[{"role": "user", "content": question}],
            user="u-17",
            extra_body={"metadata": {"application": "litellm-proxy", "domain": "hr"}},
            extra_headers={"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4737-b7ad6b7169203331-01"},
        )
        print(answer.choices[0].message.content)
    except BadRequestError as error:
        print("blocked:", error.message)
