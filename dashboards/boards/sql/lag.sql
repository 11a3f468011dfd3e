SELECT time, sum(behind) AS records, max(behind) AS worst_partition
FROM
(
    SELECT $__timeInterval(written_at) AS time, topic, partition, max(log_end - hi - 1) AS behind
    FROM ingest_batches FINAL
    WHERE $__timeFilter(written_at) AND log_end > hi
    GROUP BY time, topic, partition
)
GROUP BY time
ORDER BY time
