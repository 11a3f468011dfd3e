SELECT $__timeInterval(opened_at) AS time, tier, count() AS breaches
FROM current_breaches
WHERE $__timeFilter(opened_at)
  AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
  AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
GROUP BY time, tier
ORDER BY time, tier
