SELECT tenant_id AS tenant, app, model, sum(counted) AS interactions, sum(cost_micro_usd) / 1000000 AS usd, if(interactions = 0, 0, 1000 * usd / interactions) AS usd_a_thousand
FROM {{rolled "all"}}
GROUP BY tenant, app, model
HAVING interactions > 0
ORDER BY usd DESC, interactions DESC, tenant, app, model
LIMIT 50
