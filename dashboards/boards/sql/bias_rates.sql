SELECT domain, characteristic, k, n, {{wilson}}
FROM
(
    SELECT domain, substring(value, 9) AS characteristic, sum(counted) AS k, sum(sum(analysed)) OVER (PARTITION BY domain) AS n
    FROM {{rolledWhere "dim = 'all' OR startsWith(value, 'charter.')" "all" "bias"}}
    GROUP BY domain, characteristic
)
WHERE characteristic != '' AND k > 0 AND n > 0 AND $__conditionalAll(characteristic IN (${characteristic:singlequote}), $characteristic)
ORDER BY domain, rate DESC, characteristic
