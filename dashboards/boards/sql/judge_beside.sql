SELECT {{bucket}} AS time, beside, count() AS interactions
FROM {{beside}}
GROUP BY time, beside
ORDER BY time, beside
