SELECT sum(analysed) / (sumIf(counted, dim = 'all') - sumIf(counted, dim = 'status')) AS coverage
FROM {{rolledWhere "value IN ('', 'skipped')" "all" "status"}}
HAVING sumIf(counted, dim = 'all') > sumIf(counted, dim = 'status')
