SELECT {{wilson}}
FROM
(
    SELECT sumIf(counted, dim = 'outcome') AS k, sumIf(analysed, dim = 'all') AS n
    FROM {{rolledWhere "value IN ('', 'detected')" "all" "outcome"}}
)
