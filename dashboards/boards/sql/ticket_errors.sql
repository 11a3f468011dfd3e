SELECT error_class AS error, target, state, count() AS tickets, max(attempts) AS most_attempts, max(next_attempt_at) AS next_attempt
FROM tickets FINAL
WHERE error_class != '' AND $__timeFilter(created_at)
  AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
GROUP BY error, target, state
ORDER BY tickets DESC, error, target, state
