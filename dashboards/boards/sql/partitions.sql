SELECT
    topic, epoch, partition, max(hi) AS newest_offset,
    argMax(last_ts, hi) AS newest_record,
    max(written_at) AS written,
    sum(ingest_batches.rows) AS stored,
    sum(ingest_batches.rejected) AS dead_letters,
    sumIf(hi - lo + 1, reason = 'gap') AS lost
FROM ingest_batches FINAL
WHERE $__timeFilter(written_at)
GROUP BY topic, epoch, partition
ORDER BY topic, epoch, partition
