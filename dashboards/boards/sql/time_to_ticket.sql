SELECT quantileExact(0.5)((toUnixTimestamp64Milli(sent) - toUnixTimestamp64Milli(opened_at)) / 1000) AS seconds
FROM current_breaches AS b
INNER JOIN
(
    SELECT tenant_id, breach_id, min(sent_at) AS sent
    FROM tickets FINAL
    WHERE toUnixTimestamp64Milli(sent_at) > 0
    GROUP BY tenant_id, breach_id
) AS t ON t.tenant_id = b.tenant_id AND t.breach_id = b.breach_id
WHERE $__timeFilter(opened_at) AND sent >= opened_at
  AND $__conditionalAll(b.tenant_id IN (${tenant:singlequote}), $tenant)
  AND $__conditionalAll(b.domain IN (${domain:singlequote}), $domain)
HAVING count() > 0
