SELECT $__timeInterval(started_at) AS time, status, count() AS runs
FROM job_runs FINAL
WHERE $__timeFilter(started_at)
GROUP BY time, status
ORDER BY time, status
