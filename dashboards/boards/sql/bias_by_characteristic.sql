SELECT time, characteristic, counts.2[indexOf(counts.1, characteristic)] / n AS rate
FROM
(
    SELECT
        {{bucket}} AS time,
        sumMapIf([substring(value, 9)], [counted], dim != 'all') AS counts,
        sum(analysed) AS n,
        groupUniqArrayArray(counts.1) OVER () AS seen
    FROM {{rolledWhere "dim = 'all' OR startsWith(value, 'charter.')" "all" "bias"}}
    GROUP BY time
)
ARRAY JOIN seen AS characteristic
WHERE n > 0 AND $__conditionalAll(characteristic IN (${characteristic:singlequote}), $characteristic)
ORDER BY time, characteristic
