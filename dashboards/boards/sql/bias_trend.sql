SELECT time, {{wilson}}
FROM
(
    SELECT {{bucket}} AS time, sumIf(counted, dim = 'outcome') AS k, sumIf(analysed, dim = 'all') AS n
    FROM {{rolledWhere "value IN ('', 'detected')" "all" "outcome"}}
    GROUP BY time
)
WHERE n > 0
ORDER BY time
