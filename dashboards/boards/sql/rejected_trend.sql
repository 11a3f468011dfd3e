SELECT $__timeInterval(written_at) AS time, reason, count() AS messages
FROM rejected FINAL
WHERE $__timeFilter(written_at) AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
GROUP BY time, reason
ORDER BY time, reason
