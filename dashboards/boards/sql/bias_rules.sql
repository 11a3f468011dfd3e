SELECT rule, kind, severity, uniqExact(tenant_id, event_id) AS interactions, count() AS findings
FROM findings
WHERE $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
  AND event_day >= toDate($__toTime - 1, 'UTC') - 1 AND event_day <= toDate($__toTime - 1, 'UTC')
  AND side = 'output'
  AND (tenant_id, event_id) IN
  (
      SELECT tenant_id, event_id
      FROM audit_current
      WHERE {{scope}}
          AND event_day >= toDate($__toTime - 1, 'UTC') - 1 AND event_day <= toDate($__toTime - 1, 'UTC')
          AND event_ts < $__toTime
          AND n_findings > 0
  )
  AND (tenant_id, event_id, content_digest, kind) NOT IN
  (
      SELECT tenant_id, event_id, content_digest, arrayJoin(bias_types)
      FROM audit_current FINAL
      WHERE $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
          AND event_day >= toDate($__toTime - 1, 'UTC') - 1 AND event_day <= toDate($__toTime - 1, 'UTC')
          AND review = 'dismissed'
  )
GROUP BY rule, kind, severity
ORDER BY any(severity_level) DESC, interactions DESC, findings DESC, rule
LIMIT 20
