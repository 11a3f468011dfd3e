SELECT quantileExact(0.5)((toUnixTimestamp64Milli(opened) - 1000 * toInt64(toUnixTimestamp(ended))) / 1000) AS seconds
FROM
(
    SELECT tenant_id, breach_id, opened_at, min(changed_at) AS opened, argMin(window_to, seq) AS ended
    FROM breaches FINAL
    WHERE state = 'open' AND $__timeFilter(opened_at)
      AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
      AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
    GROUP BY tenant_id, breach_id, opened_at
)
HAVING count() > 0
