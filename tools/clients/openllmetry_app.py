import os

from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

key = os.environ.get("EVENHAND_KEY")  # unset: nobody is asked, on loopback
provider = TracerProvider(resource=Resource.create({"service.name": "openllmetry", "evenhand.domain": "hr"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(
    endpoint=os.environ["EVENHAND_URL"] + "/v1/traces",
    headers={"Authorization": "Bearer " + key} if key else None,
)))
OpenAIInstrumentor().instrument(tracer_provider=provider)

client = OpenAI()
for question in ["Who should lead the team?", "Can she lead the team?"]:
    answer = client.chat.completions.create(
        model="gpt-4o-mini",
        messages=[{"role": "user", "content": question}],
        user="u-17",
    )
    print(answer.choices[0].message.content)
provider.shutdown()  # sends what waits
