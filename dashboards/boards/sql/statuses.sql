SELECT {{bucket}} AS time, value AS status, sum(counted) AS interactions
FROM {{rolledWhere "k > 0" "status"}}
GROUP BY time, status
ORDER BY time, status
