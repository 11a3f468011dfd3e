(
        SELECT hour AS at, tenant_id, dim, app, domain, model, value, severity, n AS analysed, k AS counted, cost_micro_usd
        FROM rollup_hourly FINAL
        WHERE {{scope}}
          AND dim IN ({{.Dims}})
          AND hour >= toStartOfHour($__fromTime) AND hour < $__toTime
          AND toUnixTimestamp($__toTime) - toUnixTimestamp($__fromTime) <= 1209600{{with .Where}}
          AND ({{.}}){{end}}
        UNION ALL
        SELECT toDateTime(day, 'UTC') AS at, tenant_id, dim, app, domain, model, value, severity, n AS analysed, k AS counted, cost_micro_usd
        FROM rollup_daily FINAL
        WHERE {{scope}}
          AND dim IN ({{.Dims}})
          AND day >= toDate($__fromTime, 'UTC') AND day <= toDate($__toTime - 1, 'UTC')
          AND toUnixTimestamp($__toTime) - toUnixTimestamp($__fromTime) > 1209600{{with .Where}}
          AND ({{.}}){{end}}
    )
