SELECT countIf((tenant_id, event_day, event_id, content_digest) IN
(
    SELECT tenant_id, event_day, event_id, content_digest
    FROM verdicts FINAL
    WHERE $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
      AND event_day >= greatest(toDate($__fromTime, 'UTC'), toDate($__toTime - 1, 'UTC') - 30) AND event_day <= toDate($__toTime - 1, 'UTC')
      AND analyzer = 'hot' AND status = 'done' AND reason = 'language'
)) / count() AS rate
FROM audit_current FINAL
WHERE {{scope}}
          AND event_day >= greatest(toDate($__fromTime, 'UTC'), toDate($__toTime - 1, 'UTC') - 30) AND event_day <= toDate($__toTime - 1, 'UTC')
          AND {{within}}
          AND analysis_status IN ('done', 'partial')
HAVING count() > 0
