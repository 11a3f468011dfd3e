SELECT countIf(status IN ('failed', 'skipped')) AS waiting
FROM {{judged}}
