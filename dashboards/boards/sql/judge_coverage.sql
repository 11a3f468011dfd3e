SELECT countIf(status = 'done') / count() AS coverage
FROM {{judged}}
HAVING count() > 0
