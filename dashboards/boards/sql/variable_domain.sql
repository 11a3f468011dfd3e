SELECT DISTINCT domain FROM rollup_daily WHERE dim = 'all' AND day >= today() - 90 ORDER BY domain
