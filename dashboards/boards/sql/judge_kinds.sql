SELECT kind, k, n, {{wilson}}
FROM
(
    SELECT sumMap(kinds, arrayMap(x -> toUInt64(1), kinds)) AS counts, count() AS n
    FROM {{judged}}
    WHERE status = 'done'
)
ARRAY JOIN counts.1 AS kind, counts.2 AS k
ORDER BY rate DESC, kind
