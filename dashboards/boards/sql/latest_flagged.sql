SELECT
    event_ts AS time, tenant_id AS tenant, domain, app, model, toString(event_id) AS event_id,
    arrayStringConcat(kinds, ', ') AS kinds, max_severity AS severity, bias_sum / 1000000 AS score, confidence / 1000000 AS confidence,
    action, if(human_reviewed = 1, 'yes', 'no') AS reviewed, multiIf(review != '', toString(review), human_reviewed = 1, 'unsure', '') AS decision
FROM audit_current FINAL
WHERE {{scope}}
          AND event_day >= greatest(toDate($__fromTime, 'UTC'), toDate($__toTime - 1, 'UTC') - 6) AND event_day <= toDate($__toTime - 1, 'UTC')
          AND {{within}}
          AND flagged = 1 AND review != 'dismissed'
ORDER BY event_ts DESC
LIMIT 50
