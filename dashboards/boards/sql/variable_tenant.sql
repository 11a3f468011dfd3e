SELECT DISTINCT tenant_id FROM rollup_daily WHERE dim = 'all' AND day >= today() - 90 ORDER BY tenant_id
