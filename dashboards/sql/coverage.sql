SELECT countIf(analysis_status IN ('done', 'partial')) / count() AS coverage
FROM audit_current FINAL
WHERE {{scope}}
{{settings}}
