export OTEL_EXPORTER_OTLP_ENDPOINT="$EVENHAND_URL"
export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
export OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20$EVENHAND_KEY"
export OTEL_METRICS_EXPORTER=none
export OTEL_LOGS_EXPORTER=otlp
export OTEL_SERVICE_NAME=otel-node
export OTEL_RESOURCE_ATTRIBUTES=evenhand.domain=hr
export OTEL_NODE_ENABLED_INSTRUMENTATIONS=openai
export OTEL_NODE_RESOURCE_DETECTORS=env,host # the default asks the metadata services of clouds, too
export OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true

node --require @opentelemetry/auto-instrumentations-node/register app.js
