import os

from openai import BadRequestError, OpenAI

client = OpenAI(
    base_url=os.environ["EVENHAND_URL"] + "/v1",  # the one line; OPENAI_API_KEY stays the provider's
    default_headers={
        "X-Evenhand-Key": os.environ.get("EVENHAND_KEY", ""),  # empty: nobody is asked, on loopback
        "X-Evenhand-Application": "gateway",
        "X-Evenhand-Domain": "hr",
    },
)
for question in ["Who should lead the team?", "Can she lead the team?"]:
    for stream in [False, True]:
        try:
            answer = client.chat.completions.create(
                model="gpt-4o-mini",
                messages=[{"role": "user", "content": question}],
                stream=stream,
                stream_options={"include_usage": True} if stream else None,
            )
            if stream:
                print("".join(choice.delta.content or "" for chunk in answer for choice in chunk.choices))
            else:
                print(answer.choices[0].message.content)
        except BadRequestError as error:
            print(error.code, error.body["evenhand"]["error"]["name"])
