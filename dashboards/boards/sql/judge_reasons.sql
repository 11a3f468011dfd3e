SELECT status, reason, count() AS interactions, max(at) AS last
FROM {{judged}}
WHERE status != 'done'
GROUP BY status, reason
ORDER BY interactions DESC, status, reason
