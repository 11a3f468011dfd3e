SELECT quantile(0.95)(duration_us) / 1000000 AS seconds
FROM {{said}}
WHERE calls > 0
HAVING count() > 0
