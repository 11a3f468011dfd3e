SELECT model, characteristic, k / n AS rate
FROM
(
    SELECT model, substring(value, 9) AS characteristic, sum(counted) AS k, sum(sum(analysed)) OVER (PARTITION BY model) AS n
    FROM {{rolledWhere "dim = 'all' OR startsWith(value, 'charter.')" "all" "bias"}}
    GROUP BY model, characteristic
)
WHERE characteristic != '' AND n > 0 AND $__conditionalAll(characteristic IN (${characteristic:singlequote}), $characteristic)
ORDER BY model, characteristic
