SELECT {{bucket}} AS time, quantile(0.5)(duration_us) / 1000000 AS p50, quantile(0.95)(duration_us) / 1000000 AS p95
FROM {{said}}
WHERE calls > 0
GROUP BY time
ORDER BY time
