SELECT app, k, n, {{wilson}}
FROM
(
    SELECT app, sumIf(counted, dim = 'outcome') AS k, sumIf(analysed, dim = 'all') AS n
    FROM {{rolledWhere "value IN ('', 'detected')" "all" "outcome"}}
    GROUP BY app
)
WHERE n > 0
ORDER BY rate DESC, app
LIMIT 50
