SELECT quantileExact(0.5)((toUnixTimestamp64Milli(changed_at) - toUnixTimestamp64Milli(opened_at)) / 1000) AS seconds
FROM breaches FINAL
WHERE state = 'mitigated' AND $__timeFilter(changed_at)
  AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
  AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
HAVING count() > 0
