SELECT domain, kind, k / n AS rate
FROM
(
    SELECT domain, value AS kind, sum(counted) AS k, sum(sum(analysed)) OVER (PARTITION BY domain) AS n
    FROM {{rolledWhere "dim = 'all' OR NOT startsWith(value, 'charter.')" "all" "kind"}}
    GROUP BY domain, kind
)
WHERE kind != '' AND n > 0
ORDER BY domain, kind
