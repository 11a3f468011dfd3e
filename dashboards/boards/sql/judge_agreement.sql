SELECT {{wilson}}
FROM
(
    SELECT countIf(beside IN ('both', 'neither')) AS k, count() AS n
    FROM {{beside}}
)
WHERE n > 0
