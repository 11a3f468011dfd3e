SELECT
    at AS time, tenant_id AS tenant, toString(event_id) AS event_id, if(flagged = 1, 'non-compliant', 'needs review') AS verdict,
    arrayStringConcat(kinds, ', ') AS kinds, confidence / 1000000 AS confidence, rule_set AS judge
FROM {{judged}}
WHERE status = 'done' AND (flagged = 1 OR mitigation = 'HUMAN_REVIEW')
ORDER BY analysis_ts DESC
LIMIT 50
