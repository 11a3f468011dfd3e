SELECT {{bucket}} AS time, rule_set AS judge, sum(cost_micro_usd) / 1000000 AS usd
FROM {{said}}
WHERE calls > 0
GROUP BY time, judge
ORDER BY time, judge
