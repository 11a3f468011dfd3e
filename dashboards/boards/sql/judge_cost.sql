SELECT sum(cost_micro_usd) / 1000000 AS usd
FROM {{said}}
