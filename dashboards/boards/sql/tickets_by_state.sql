SELECT state, target, action, count() AS tickets, max(attempts) AS most_attempts, nullIf(minIf(created_at, toUnixTimestamp64Milli(sent_at) <= 0), toDateTime64(0, 3, 'UTC')) AS oldest_unsent
FROM tickets FINAL
WHERE $__timeFilter(created_at)
  AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
GROUP BY state, target, action
ORDER BY tickets DESC, state, target, action
