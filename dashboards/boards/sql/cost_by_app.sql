SELECT tenant, app, model, interactions, usd, if(interactions = 0, 0, 1000 * usd / interactions) AS usd_a_thousand
FROM
(
    SELECT
        if(place <= 50, tenant_id, '') AS tenant, if(place <= 50, app, 'others') AS app, if(place <= 50, model, '') AS model,
        min(place) AS first, sum(found) AS interactions, sum(cost) AS usd
    FROM
    (
        SELECT tenant_id, app, model, sum(counted) AS found, sum(cost_micro_usd) / 1000000 AS cost, row_number() OVER (ORDER BY cost DESC, found DESC, tenant_id, app, model) AS place
        FROM {{rolled "all"}}
        GROUP BY tenant_id, app, model
        HAVING found > 0
    )
    GROUP BY tenant, app, model
)
ORDER BY first
