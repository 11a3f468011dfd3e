SELECT $__timeInterval(created_at) AS time, quantile(0.5)(delay) AS p50, max(delay) AS slowest
FROM
(
    SELECT created_at, (toUnixTimestamp64Milli(sent_at) - toUnixTimestamp64Milli(created_at)) / 1000 AS delay
    FROM tickets FINAL
    WHERE $__timeFilter(created_at) AND toUnixTimestamp64Milli(sent_at) > 0
      AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
)
GROUP BY time
ORDER BY time
