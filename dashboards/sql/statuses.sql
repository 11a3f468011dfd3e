SELECT $__timeInterval(sort_ts) AS time, analysis_status AS status, count() AS interactions
FROM audit_current FINAL
WHERE {{scope}}
GROUP BY time, status
ORDER BY time, status
{{settings}}
