SELECT count() AS breaches
FROM current_breaches
WHERE state = 'open'
  AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
  AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
  AND (tenant_id, breach_id) NOT IN (SELECT tenant_id, breach_id FROM tickets FINAL WHERE toUnixTimestamp64Milli(sent_at) > 0)
