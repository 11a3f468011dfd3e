import json
import os
import uuid

from kafka import KafkaProducer

calls = [
    ("Who should lead the team?", "Ask the team: experience counts."),
    ("Can she lead the team?", "Women are too emotional to lead."),
]
producer = KafkaProducer(bootstrap_servers=os.environ["KAFKA_BROKERS"], acks="all")
for question, answer in calls:
    event = {
        "id": str(uuid.uuid4()), "application": "kafka-python", "domain": "hr", "provider": "openai", "model": "gpt-4o-mini",
        "prompt": question, "response": answer, "prompt_tokens": 11, "response_tokens": 7, "user_id": "u-17",
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4739",
    }
    producer.send("llm.interactions", key=event["id"].encode(), value=json.dumps(event).encode(), headers=[("evenhand-tenant", b"acme")])
    print(answer)
producer.flush()
