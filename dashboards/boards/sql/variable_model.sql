SELECT DISTINCT model FROM rollup_daily WHERE dim = 'all' AND day >= today() - 90 ORDER BY model
