SELECT
    opened_at AS time,
    if(state = 'open', now64(3), changed_at) AS timeEnd,
    concat('Breach: ', multiIf(tier = 'blind', 'not analysed', kind = '', 'any bias', kind)) AS title,
    concat(domain, ', ', tier, ', ', state, ': ', toString(k), if(tier = 'policy', ' found', concat(' of ', toString(n), ' against ', toString(round(100 * baseline, 2)), ' %'))) AS text,
    concat('breach,', tier, ',', state) AS tags
FROM current_breaches
WHERE $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
  AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
  AND time <= $__toTime AND timeEnd >= $__fromTime
ORDER BY time
LIMIT 200
