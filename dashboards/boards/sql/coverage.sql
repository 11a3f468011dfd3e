SELECT if(sum(counted) = 0, 1, sum(analysed) / sum(counted)) AS coverage
FROM {{rolled "all"}}
