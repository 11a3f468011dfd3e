SELECT time, {{wilson}}
FROM
(
    SELECT {{bucket}} AS time, sumIf(counted, dim = 'bias') AS k, sumIf(analysed, dim = 'all') AS n
    FROM {{rolledWhere "dim = 'all' OR (startsWith(value, 'charter.') AND substring(value, 9) IN (${characteristic:singlequote}))" "all" "bias"}}
    GROUP BY time
)
WHERE n > 0
ORDER BY time
