SELECT rule, kind, severity, uniqExact(event_id) AS interactions, count() AS findings
FROM findings
WHERE tenant_id IN (${tenant:singlequote})
  AND event_day >= toDate($__fromTime) AND event_day <= toDate($__toTime)
  AND side = 'output'
  AND (tenant_id, event_id) IN
  (
      SELECT tenant_id, event_id
      FROM audit_current
      WHERE {{scope}}
        AND n_findings > 0
  )
GROUP BY rule, kind, severity
ORDER BY any(severity_level) DESC, interactions DESC, findings DESC, rule
LIMIT 20
{{settings}}
