SELECT reason, if(tenant_id = '', 'none', tenant_id) AS tenant, count() AS messages, min(written_at) AS first, max(written_at) AS last, sum(value_bytes) AS bytes
FROM rejected FINAL
WHERE $__timeFilter(written_at) AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
GROUP BY reason, tenant
ORDER BY messages DESC, reason, tenant
LIMIT 50
