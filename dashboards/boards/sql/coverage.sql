SELECT sum(analysed) / sum(counted) AS coverage
FROM {{rolled "all"}}
HAVING sum(counted) > 0
