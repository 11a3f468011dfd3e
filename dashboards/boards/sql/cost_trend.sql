SELECT {{bucket}} AS time, model, sum(cost_micro_usd) / 1000000 AS usd
FROM {{rolledWhere "cost_micro_usd != 0" "all"}}
GROUP BY time, model
ORDER BY time, model
