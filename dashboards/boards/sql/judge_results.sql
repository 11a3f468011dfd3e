SELECT {{bucket}} AS time, multiIf(status != 'done', status, flagged = 1, 'non-compliant', mitigation = 'HUMAN_REVIEW', 'needs review', 'compliant') AS verdict, count() AS interactions
FROM {{judged}}
GROUP BY time, verdict
ORDER BY time, verdict
