import os

import httpx
from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

key = os.environ.get("EVENHAND_KEY")  # unset: nobody is asked, on loopback
credential = {"Authorization": "Bearer " + key} if key else {}
calls = [
    ("Who should lead the team?", "Ask the team: experience counts."),
    ("Can she lead the team?", "Women are too emotional to lead."),
]
for number, (question, answer) in enumerate(calls):
    event = CloudEvent(
        attributes={
            "source": "/apps/cloudevents",
            "type": "llm.interaction.completed.v1",
            "subject": "chat/7",
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4738-b7ad6b7169203331-01",
        },
        data={"domain": "hr", "provider": "openai", "model": "gpt-4o-mini", "prompt": question, "response": answer,
              "prompt_tokens": 11, "response_tokens": 7, "user_id": "u-17"},
    )
    message = to_binary_event(event) if number == 0 else to_structured_event(event)  # both are read
    httpx.post(
        os.environ["EVENHAND_URL"] + "/v1/cloudevents",
        headers=credential | message.headers,
        content=message.body,
    ).raise_for_status()
    print(answer)
