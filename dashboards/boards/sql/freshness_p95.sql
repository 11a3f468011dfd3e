SELECT quantile(0.95)((toUnixTimestamp64Milli(written_at) - toUnixTimestamp64Milli(first_ts)) / 1000) AS seconds
FROM ingest_batches FINAL
WHERE $__timeFilter(written_at) AND rows + rejected > 0
HAVING count() > 0
