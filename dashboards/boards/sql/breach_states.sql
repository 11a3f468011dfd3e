SELECT tier, domain, countIf(state = 'open') AS open, countIf(state = 'mitigated') AS mitigated, countIf(state = 'resolved') AS resolved
FROM current_breaches
WHERE (state = 'open' OR $__timeFilter(changed_at))
  AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
  AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
GROUP BY tier, domain
ORDER BY open DESC, tier, domain
