SELECT $__timeInterval(written_at) AS time, count() AS batches, avg(ingest_batches.rows) AS rows_a_batch
FROM ingest_batches FINAL
WHERE $__timeFilter(written_at) AND reason != 'gap'
GROUP BY time
ORDER BY time
