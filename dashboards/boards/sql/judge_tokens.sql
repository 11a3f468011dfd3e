SELECT {{bucket}} AS time, sum(tokens_in) AS read, sum(tokens_out) AS written
FROM {{said}}
GROUP BY time
ORDER BY time
