SELECT
    job,
    argMax(status, (finished_at, run_id)) AS last_status,
    max(started_at) AS last_start,
    argMax(toUnixTimestamp64Milli(finished_at) - toUnixTimestamp64Milli(started_at), (finished_at, run_id)) / 1000 AS seconds,
    nullIf(maxIf(finished_at, status = 'done'), toDateTime64(0, 3, 'UTC')) AS last_success,
    countIf(status = 'done') AS succeeded,
    countIf(status NOT IN ('done', 'skipped', 'canceled')) AS failed
FROM job_runs FINAL
WHERE $__timeFilter(started_at)
GROUP BY job
ORDER BY job
