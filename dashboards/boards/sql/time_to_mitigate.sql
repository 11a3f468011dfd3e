SELECT quantileExact(0.5)((toUnixTimestamp64Milli(closed) - toUnixTimestamp64Milli(opened)) / 1000) AS seconds
FROM
(
    SELECT tenant_id, breach_id, opened_at, minIf(changed_at, state = 'open') AS opened, maxIf(changed_at, state = 'mitigated') AS closed
    FROM breaches FINAL
    WHERE $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
      AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
    GROUP BY tenant_id, breach_id, opened_at
    HAVING countIf(state = 'open') > 0 AND countIf(state = 'mitigated') > 0
)
WHERE $__timeFilter(closed)
HAVING count() > 0
