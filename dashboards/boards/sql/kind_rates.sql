SELECT kind, k, n, {{wilson}}
FROM
(
    SELECT value AS kind, sum(counted) AS k, sum(sum(analysed)) OVER () AS n
    FROM {{rolledWhere "dim = 'all' OR NOT startsWith(value, 'charter.')" "all" "kind"}}
    GROUP BY kind
)
WHERE kind != '' AND k > 0 AND n > 0
ORDER BY rate DESC, kind
