SELECT countIf(has(kinds, 'judge.injection_attempt')) AS attempts
FROM {{judged}}
