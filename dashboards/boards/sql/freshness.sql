SELECT
    $__timeInterval(written_at) AS time,
    quantile(0.5)(age) AS p50,
    quantile(0.95)(age) AS p95,
    max(age) AS slowest
FROM
(
    SELECT written_at, (toUnixTimestamp64Milli(written_at) - toUnixTimestamp64Milli(first_ts)) / 1000 AS age
    FROM ingest_batches FINAL
    WHERE $__timeFilter(written_at) AND rows + rejected > 0
)
GROUP BY time
ORDER BY time
