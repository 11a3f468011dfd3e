SELECT count() AS open
FROM current_breaches
WHERE state = 'open'
  AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
  AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
