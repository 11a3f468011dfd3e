SELECT countIf(status = 'done') AS judged
FROM {{judged}}
