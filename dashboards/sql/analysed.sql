SELECT count() AS analysed
FROM audit_current FINAL
WHERE {{scope}}
  AND analysis_status IN ('done', 'partial')
{{settings}}
