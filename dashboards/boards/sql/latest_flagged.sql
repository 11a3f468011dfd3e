SELECT
    event_ts AS time, tenant_id AS tenant, domain, app, model, toString(event_id) AS event_id,
    arrayStringConcat(kinds, ', ') AS kinds, max_severity AS severity, bias_sum / 1000000 AS score, confidence / 1000000 AS confidence,
    action, human_reviewed AS reviewed
FROM audit_current FINAL
WHERE {{scope}}
          AND event_day >= greatest(toDate($__fromTime, 'UTC'), toDate($__toTime - 1, 'UTC') - 6) AND event_day <= toDate($__toTime - 1, 'UTC')
          AND {{within}}
          AND flagged = 1
ORDER BY event_ts DESC
LIMIT 50
