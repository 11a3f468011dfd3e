SELECT
    rule_set AS judge, count() AS verdicts, countIf(status = 'done') AS done, sum(calls) AS questions, sum(tokens_in) AS tokens_read, sum(tokens_out) AS tokens_written,
    sum(cost_micro_usd) / 1000000 AS usd, 1000 * usd / verdicts AS usd_a_thousand, quantile(0.5)(duration_us) / 1000000 AS p50, quantile(0.95)(duration_us) / 1000000 AS p95
FROM {{said}}
WHERE calls > 0
GROUP BY judge
ORDER BY verdicts DESC, judge
LIMIT 50
