SELECT domain, k, n, {{wilson}}
FROM
(
    SELECT domain, countIf((tenant_id, event_day, event_id, content_digest) IN (SELECT tenant_id, event_day, event_id, content_digest FROM {{judged}} WHERE status = 'done')) AS k, count() AS n
    FROM audit_current FINAL
    WHERE $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
      AND event_day >= greatest(toDate($__fromTime, 'UTC'), toDate($__toTime - 1, 'UTC') - 6) AND event_day <= toDate($__toTime - 1, 'UTC')
      AND {{within}}
    GROUP BY domain
)
ORDER BY domain
