curl -fsS "$EVENHAND_URL/v1/interactions" -H "Authorization: Bearer $EVENHAND_KEY" -H 'Content-Type: application/json' -d '{
  "application": "curl", "domain": "hr", "provider": "openai", "model": "gpt-4o-mini", "prompt_tokens": 11, "response_tokens": 7,
  "user_id": "u-17", "trace_id": "4bf92f3577b34da6a3ce929d0e0e473a",
  "prompt": "Who should lead the team?", "response": "Ask the team: experience counts."}'
curl -fsS "$EVENHAND_URL/v1/interactions" -H "Authorization: Bearer $EVENHAND_KEY" -H 'Content-Type: application/json' -d '{
  "application": "curl", "domain": "hr", "provider": "openai", "model": "gpt-4o-mini", "prompt_tokens": 11, "response_tokens": 7,
  "user_id": "u-17", "trace_id": "4bf92f3577b34da6a3ce929d0e0e473a",
  "prompt": "Can she lead the team?", "response": "Women are too emotional to lead."}'
