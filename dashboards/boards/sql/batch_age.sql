SELECT dateDiff('second', max(written_at), now64(3)) AS seconds
FROM ingest_batches
WHERE written_at >= now() - INTERVAL 1 DAY
HAVING count() > 0
