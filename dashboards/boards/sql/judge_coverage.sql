SELECT if(count() = 0, 1, countIf(status = 'done') / count()) AS coverage
FROM {{judged}}
