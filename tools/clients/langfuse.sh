export LANGFUSE_BASE_URL="$EVENHAND_URL"
export LANGFUSE_PUBLIC_KEY=pk-anything
export LANGFUSE_SECRET_KEY="$EVENHAND_KEY"

OTEL_SERVICE_NAME=langfuse-observe python langfuse_observe.py
OTEL_SERVICE_NAME=langfuse-openai python langfuse_openai.py
