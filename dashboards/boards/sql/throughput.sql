SELECT
    $__timeInterval(written_at) AS time,
    sum(ingest_batches.rows) / $__interval_s AS stored,
    sum(ingest_batches.rejected) / $__interval_s AS dead_letters
FROM ingest_batches FINAL
WHERE $__timeFilter(written_at)
GROUP BY time
ORDER BY time
