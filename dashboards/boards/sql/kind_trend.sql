SELECT time, kind, counts.2[indexOf(counts.1, kind)] / n AS rate
FROM
(
    SELECT
        {{bucket}} AS time,
        sumMapIf([value], [counted], dim != 'all') AS counts,
        sum(analysed) AS n,
        groupUniqArrayArray(counts.1) OVER () AS seen
    FROM {{rolledWhere . "all" "kind"}}
    GROUP BY time
)
ARRAY JOIN seen AS kind
WHERE n > 0
ORDER BY time, kind
