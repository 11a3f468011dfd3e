SELECT {{bucket}} AS time, value AS mitigation, sum(counted) AS interactions
FROM {{rolledWhere "k > 0" "mitigation"}}
GROUP BY time, mitigation
ORDER BY time, mitigation
