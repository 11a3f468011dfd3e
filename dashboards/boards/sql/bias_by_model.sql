SELECT model, k, n, {{wilson}}
FROM
(
    SELECT model, sumIf(counted, dim = 'outcome') AS k, sumIf(analysed, dim = 'all') AS n
    FROM {{rolledWhere "value IN ('', 'detected')" "all" "outcome"}}
    GROUP BY model
)
WHERE n > 0
ORDER BY rate DESC, model
LIMIT 50
