SELECT
    {{bucket}} AS time,
    countIf(bias_detected = 1) / count() AS bias,
    countIf(arrayExists(k -> startsWith(k, 'dei.'), kinds)) / count() AS dei,
    countIf(arrayExists(k -> startsWith(k, 'offensive.'), kinds)) / count() AS offensive
FROM {{judged}}
WHERE status = 'done'
GROUP BY time
ORDER BY time
