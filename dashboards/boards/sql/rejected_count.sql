SELECT uniqExact(topic, epoch, partition, offset) AS dead_letters
FROM rejected
WHERE $__timeFilter(written_at) AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
