SELECT quantileExact(0.5)((toUnixTimestamp64Milli(opened_at) - 1000 * toInt64(toUnixTimestamp(began))) / 1000) AS seconds
FROM
(
    SELECT tenant_id, breach_id, opened_at, argMin(window_from, seq) AS began
    FROM breaches FINAL
    WHERE state = 'open' AND $__timeFilter(opened_at)
      AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
      AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
    GROUP BY tenant_id, breach_id, opened_at
)
HAVING count() > 0
