SELECT sum(analysed) AS analysed
FROM {{rolled "all"}}
