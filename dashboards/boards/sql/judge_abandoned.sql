SELECT countIf(status = 'abandoned') AS abandoned
FROM {{judged}}
